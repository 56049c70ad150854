package cniserver

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/node/cniserver/podlink"
	"github.com/egret-net/egret/internal/plane/ovs"
)

// OVSPorts is what the plane of the Open vSwitch database (ovs.DB, ovs.Fake) has for pods.
type OVSPorts interface {
	AddPodPort(ctx context.Context, p ovs.PodPort) error
	DelPodPort(ctx context.Context, hostIface string) error
	PodPorts(ctx context.Context) ([]ovs.PodPort, error)
	WaitInstalled(ctx context.Context, hostIface string) error
}

// FromOVS makes Attachments of the plane.
func FromOVS(ports OVSPorts) Attachments { return fromOVS{ports} }

type fromOVS struct{ OVSPorts }

func (f fromOVS) AddPodPort(ctx context.Context, p PodPort) error {
	row := ovs.PodPort{
		Bridge: p.Bridge, HostIface: p.HostIface, IfaceID: p.IfaceID, SandboxID: p.SandboxID, Namespace: p.Namespace,
		Name: p.Name, UID: p.UID, NetNS: p.NetNS, IfName: p.IfName, MAC: p.MAC, EgressPaused: p.EgressPaused,
	}
	for _, ip := range p.IPs {
		row.IPs = append(row.IPs, ip.String())
	}
	return f.OVSPorts.AddPodPort(ctx, row)
}

func (f fromOVS) PodPorts(ctx context.Context) ([]PodPort, error) {
	rows, err := f.OVSPorts.PodPorts(ctx)
	if err != nil {
		return nil, err
	}
	ports := make([]PodPort, len(rows))
	for i, row := range rows {
		ports[i] = portFromOVS(row)
	}
	return ports, nil
}

// portFromOVS is one attachment of the plane as this package has it. An address that cannot be read, for somebody has
// written it, is that pod's trouble: the others are attached and detached all the same.
func portFromOVS(row ovs.PodPort) PodPort {
	p := PodPort{
		Bridge: row.Bridge, HostIface: row.HostIface, IfaceID: row.IfaceID, SandboxID: row.SandboxID,
		Namespace: row.Namespace,
		Name:      row.Name, UID: row.UID, NetNS: row.NetNS, IfName: row.IfName, MAC: row.MAC,
		EgressPaused: row.EgressPaused,
	}
	for _, text := range row.IPs {
		if ip, err := netip.ParseAddr(text); err == nil {
			p.IPs = append(p.IPs, ip)
		} else {
			p.Problem = fmt.Sprintf("port %s has address %q in its external_ids: delete the pod", row.HostIface, text)
			if ip, is := podlink.AddressOf(row.MAC); is && strings.Contains(text, ".") {
				p.IPs = append(p.IPs, ip) // it stays the pod's, and becomes nobody else's
			}
		}
	}
	return p
}
