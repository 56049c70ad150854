package cniserver

import (
	"cmp"
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

// AddPodPort makes one port, or both of a pod with a network of its own.
func (f fromOVS) AddPodPort(ctx context.Context, p PodPort) error {
	row := ovs.PodPort{
		Bridge: p.Bridge, HostIface: p.HostIface, IfaceID: p.IfaceID, SandboxID: p.SandboxID, Namespace: p.Namespace,
		Name: p.Name, UID: p.UID, NetNS: p.NetNS, IfName: p.IfName, MAC: p.MAC, EgressPaused: p.EgressPaused,
		IPs: addressTexts(p.IPs),
	}
	if err := f.OVSPorts.AddPodPort(ctx, row); err != nil || p.Primary == nil {
		return err
	}
	row.HostIface, row.IfaceID, row.IfName = p.Primary.HostIface, p.Primary.IfaceID, podlink.PrimaryIfName
	row.MAC, row.IPs, row.EgressPaused = p.Primary.MAC, addressTexts(p.Primary.IPs), false
	row.Network, row.Definition = p.Primary.Network, p.Primary.Definition
	return f.OVSPorts.AddPodPort(ctx, row)
}

func addressTexts(ips []netip.Addr) (out []string) {
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}

// PodPorts are the pods' ports, and of a pod with a network of its own both in one. Where the default network's is
// gone, what is left of the pod still has the name of it, by which it is taken away.
func (f fromOVS) PodPorts(ctx context.Context) ([]PodPort, error) {
	rows, err := f.OVSPorts.PodPorts(ctx)
	if err != nil {
		return nil, err
	}
	ports, bySandbox := []PodPort{}, map[string]int{}
	for _, row := range rows {
		if row.Network == "" {
			bySandbox[row.SandboxID] = len(ports)
			ports = append(ports, portFromOVS(row))
		}
	}
	for _, row := range rows {
		if row.Network == "" {
			continue
		}
		i, is := bySandbox[row.SandboxID]
		if !is {
			i, bySandbox[row.SandboxID] = len(ports), len(ports)
			ports = append(ports, PodPort{HostIface: podlink.HostName(row.SandboxID), SandboxID: row.SandboxID,
				Namespace: row.Namespace, Name: row.Name, UID: row.UID})
		}
		own := portFromOVS(row)
		ports[i].Primary = &PrimaryPort{HostIface: row.HostIface, IfaceID: row.IfaceID, Network: row.Network,
			Definition: row.Definition, MAC: row.MAC, IPs: own.IPs}
		ports[i].Problem = cmp.Or(ports[i].Problem, own.Problem)
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
