package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// PodPort is a pod's attachment: a port of br-int and all that is known of it. Its Interface row is the only memory of
// it.
type PodPort struct {
	Bridge       string
	HostIface    string // the host's end of the veth pair
	IfaceID      string // logical switch port, "namespace_name"
	SandboxID    string
	Namespace    string
	Name         string
	UID          string
	NetNS        string // path of the pod's network namespace
	IfName       string // the pod's end, as it was named first; "" if an earlier agent made it
	MAC          string
	IPs          []string // addresses of the pod, without prefix length
	Network      string   // "" of the default one
	Definition   string   // "namespace/name" of what describes that network to the pod's namespace
	EgressPaused bool     // outside traffic is dropped until its egress IP is ready
	Installed    bool     // ovn-controller has the port's flows installed; read only
}

const (
	ifaceIDKey   = "iface-id"
	podUIDKey    = "iface-id-ver" // ovn-controller compares it with the logical port's option of that name
	macKey       = "attached_mac"
	ipsKey       = "ip_addresses"
	sandboxKey   = "sandbox"
	podKey       = "k8s.ovn.org/pod" // "namespace/name"
	netnsKey     = "netns"
	networkKey   = "k8s.ovn.org/network"
	nadKey       = "k8s.ovn.org/nad"
	ifNameKey    = "ifname"
	heldKey      = "held-back"
	installedKey = "ovn-installed"
)

func (p PodPort) externalIDs() map[string]string {
	ids := map[string]string{ownerKey: ownerPod, ifaceIDKey: p.IfaceID, podUIDKey: p.UID, macKey: p.MAC,
		sandboxKey: p.SandboxID,
		ipsKey:     strings.Join(p.IPs, ","), podKey: p.Namespace + "/" + p.Name, netnsKey: p.NetNS,
		ifNameKey: p.IfName, networkKey: p.Network, nadKey: p.Definition}
	if p.EgressPaused {
		ids[heldKey] = "true"
	}
	maps.DeleteFunc(ids, func(_, v string) bool { return v == "" })
	ids[keysKey] = strings.Join(slices.Sorted(maps.Keys(ids)), " ")
	return ids
}

func podPort(at place) PodPort {
	ids := at.iface.ExternalIDs
	ns, name, _ := strings.Cut(ids[podKey], "/")
	p := PodPort{Bridge: at.bridge, HostIface: at.iface.Name, IfaceID: ids[ifaceIDKey], SandboxID: ids[sandboxKey],
		Namespace: ns,
		Name:      name, UID: ids[podUIDKey], NetNS: ids[netnsKey], IfName: ids[ifNameKey], MAC: ids[macKey],
		Network: ids[networkKey], Definition: ids[nadKey], EgressPaused: ids[heldKey] == "true",
		Installed: ids[installedKey] == "true"}
	if ids[ipsKey] != "" {
		p.IPs = strings.Split(ids[ipsKey], ",")
	}
	return p
}

// AddPodPort attaches a pod. It may be called again with the same sandbox; a port of that name that an earlier sandbox
// left is replaced, and another port that still claims the same IfaceID loses it, for ovn-controller binds only one.
func (d *DB) AddPodPort(ctx context.Context, p PodPort) error {
	if err := p.checkAddresses(); err != nil {
		return err
	}
	what := fmt.Sprintf("attach pod %s/%s", p.Namespace, p.Name)
	return d.changePorts(ctx, what, func(t topology) ([]ovsdb.Operation, error) {
		rivals, err := d.releaseIfaceID(t, p)
		if err != nil {
			return nil, err
		}
		ops, err := d.podPortOps(t, p)
		return append(rivals, ops...), err
	})
}

// changePorts carries out operations that follow from the ports that are there.
func (d *DB) changePorts(ctx context.Context, what string, opsFor func(topology) ([]ovsdb.Operation, error)) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	t, err := d.readTopology(ctx)
	if err != nil {
		return err
	}
	ops, err := opsFor(t)
	if err == nil {
		err = d.commitOps(ctx, ops)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (p PodPort) checkAddresses() error {
	for _, ip := range p.IPs {
		if _, err := netip.ParseAddr(ip); err != nil {
			return fmt.Errorf("attach pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

func (d *DB) podPortOps(t topology, p PodPort) ([]ovsdb.Operation, error) {
	b, ok := t.bridges[p.Bridge]
	if !ok {
		return nil, fmt.Errorf("bridge %s does not exist: is ovn-controller running?", p.Bridge)
	}
	want := iface{Name: p.HostIface, ExternalIDs: p.externalIDs()}
	at, ok := t.ports[p.HostIface]
	switch {
	case !ok:
		return d.insertOps(b, want, nil)
	case at.iface.ExternalIDs[ownerKey] != ownerPod:
		return nil, errNotOurs
	case at.bridge != p.Bridge || at.iface.ExternalIDs[sandboxKey] != p.SandboxID:
		return d.insertOps(b, want, &removal{t.bridges[at.bridge], at.port})
	}
	want.MTURequest, want.Options, want.BFD = at.iface.MTURequest, at.iface.Options, at.iface.BFD
	return d.updateIface(at.iface, want)
}

// releaseIfaceID takes p's IfaceID from other pods' ports.
func (d *DB) releaseIfaceID(t topology, p PodPort) ([]ovsdb.Operation, error) {
	var ops []ovsdb.Operation
	for name, at := range t.ports {
		ids := at.iface.ExternalIDs
		if name == p.HostIface || ids[ownerKey] != ownerPod || ids[ifaceIDKey] != p.IfaceID {
			continue
		}
		more, err := d.client.Where(&at.iface).Mutate(&at.iface, model.Mutation{Field: &at.iface.ExternalIDs,
			Mutator: ovsdb.MutateOperationDelete, Value: map[string]string{ifaceIDKey: p.IfaceID}})
		if err != nil {
			return nil, err
		}
		ops = append(ops, more...)
	}
	return ops, nil
}

// findPodPort is the port of this name, if it is a pod's.
func (t topology) findPodPort(name string) (at place, ok bool) {
	at, ok = t.ports[name]
	return at, ok && at.iface.ExternalIDs[ownerKey] == ownerPod
}

// DelPodPort detaches a pod. A port that is not there, or is no pod's, is no error and stays as it is.
func (d *DB) DelPodPort(ctx context.Context, hostIface string) error {
	return d.changePorts(ctx, "detach port "+hostIface, func(t topology) ([]ovsdb.Operation, error) {
		at, ok := t.findPodPort(hostIface)
		if !ok {
			return nil, nil
		}
		return d.removePort(removal{t.bridges[at.bridge], at.port})
	})
}

// SetEgressPaused notes whether the pod's outside traffic is dropped until its egress IP is ready.
func (d *DB) SetEgressPaused(ctx context.Context, hostIface string, paused bool) error {
	return d.changePorts(ctx, "pause egress of "+hostIface, func(t topology) ([]ovsdb.Operation, error) {
		at, ok := t.findPodPort(hostIface)
		if !ok {
			return nil, errors.New("it is no pod's port")
		}
		p := podPort(at)
		p.EgressPaused = paused
		want := at.iface
		want.ExternalIDs = p.externalIDs()
		return d.updateIface(at.iface, want)
	})
}

// PodPorts are all attachments, by host interface.
func (d *DB) PodPorts(ctx context.Context) ([]PodPort, error) {
	t, err := d.readTopology(ctx)
	if err != nil {
		return nil, err
	}
	var out []PodPort
	for _, at := range t.ports {
		if at.iface.ExternalIDs[ownerKey] == ownerPod {
			out = append(out, podPort(at))
		}
	}
	slices.SortFunc(out, func(a, b PodPort) int { return strings.Compare(a.HostIface, b.HostIface) })
	return out, nil
}

// WaitInstalled blocks until ovn-controller says that the port's flows are installed
// (Interface.external_ids:ovn-installed).
func (d *DB) WaitInstalled(ctx context.Context, hostIface string) error {
	err := d.awaitCondition(ctx, func() bool {
		row, ok, err := d.interfaceNamed(ctx, hostIface)
		return err == nil && ok && row.ExternalIDs[installedKey] == "true"
	})
	if err != nil {
		return fmt.Errorf("wait for the flows of port %s, is ovn-controller running? %w", hostIface, err)
	}
	return nil
}
