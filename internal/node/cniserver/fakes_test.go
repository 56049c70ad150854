package cniserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/egret-net/egret/internal/node/cniserver"
)

var errInjected = errors.New("injected")

// faults fails the named steps.
type faults struct {
	mu   sync.Mutex
	step map[string]bool
}

func (f *faults) set(step string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.step = map[string]bool{step: true}
}

func (f *faults) at(step string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.step[step] {
		return errInjected
	}
	return nil
}

// faultyPorts are Attachments of which one step may fail.
type faultyPorts struct {
	cniserver.Attachments
	*faults
}

func (f faultyPorts) AddPodPort(ctx context.Context, p cniserver.PodPort) error {
	if err := f.at("AddPodPort"); err != nil {
		return err
	}
	// OVS writes a port's flags back as it read them: who sets it up only then may see it go down again.
	if link, err := net.InterfaceByName(p.HostIface); err == nil && link.Flags&net.FlagUp == 0 {
		return fmt.Errorf("%s is handed to OVS before it is up", p.HostIface)
	}
	return f.Attachments.AddPodPort(ctx, p)
}

func (f faultyPorts) DelPodPort(ctx context.Context, hostIface string) error {
	if err := errors.Join(f.at("DelPodPort"), ctx.Err()); err != nil {
		return err
	}
	return f.Attachments.DelPodPort(ctx, hostIface)
}

func (f faultyPorts) WaitInstalled(ctx context.Context, hostIface string) error {
	if err := f.at("WaitInstalled"); err != nil {
		return err
	}
	return f.Attachments.WaitInstalled(ctx, hostIface)
}

// fakeNode is the loop's side: it knows every pod and remembers what it was told.
type fakeNode struct {
	*faults
	mu          sync.Mutex
	subnets     []netip.Prefix
	notReady    error
	uid         string // of all pods
	hostNetwork bool
	refused     string
	network     *cniserver.PrimaryNetwork
	annotated   int // calls
	annotations map[string]cniserver.PodNetworks
	attached    map[string]cniserver.PodPort
	said        []netip.Addr
	asked       func()        // by SaidAddresses
	hang        chan struct{} // Attached hangs after a value is taken
}

func newFakeNode(f *faults, subnets ...string) *fakeNode {
	n := &fakeNode{faults: f, uid: "uid", annotations: map[string]cniserver.PodNetworks{},
		attached: map[string]cniserver.PodPort{}}
	for _, s := range subnets {
		n.subnets = append(n.subnets, netip.MustParsePrefix(s))
	}
	return n
}

func (n *fakeNode) Ready() error            { return n.notReady }
func (n *fakeNode) Subnets() []netip.Prefix { return n.subnets }
func (n *fakeNode) SaidAddresses(context.Context, string) ([]netip.Addr, error) {
	if n.asked != nil {
		n.asked()
	}
	return n.said, n.at("SaidAddresses")
}

func (n *fakeNode) PrimaryNetwork(context.Context, string) (*cniserver.PrimaryNetwork, error) {
	if n.network == nil || len(n.network.Subnets) == 0 {
		return nil, errors.New("no subnet of network blue yet")
	}
	return n.network, nil
}

func (n *fakeNode) FurtherNetworks(context.Context) (names []string, err error) {
	if n.network != nil {
		names = append(names, n.network.Network)
	}
	return names, n.at("FurtherNetworks")
}

func (n *fakeNode) DefaultInside() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00::/48"),
		netip.MustParsePrefix("100.64.0.0/16"), netip.MustParsePrefix("fd98::/64")}
}

func (n *fakeNode) MTU() int                { return 1400 }
func (n *fakeNode) UserspaceDatapath() bool { return true }

func (n *fakeNode) Pod(context.Context, string, string, string) (cniserver.PodInfo, error) {
	info := cniserver.PodInfo{UID: n.uid, HostNetwork: n.hostNetwork, Refused: n.refused}
	if n.network != nil {
		info.Network = n.network.Network
	}
	return info, n.at("Pod")
}

func (n *fakeNode) Annotate(_ context.Context, p cniserver.PodPort, nets cniserver.PodNetworks) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.annotated++
	if nets == nil {
		delete(n.annotations, p.Namespace+"/"+p.Name)
		return nil
	}
	n.annotations[p.Namespace+"/"+p.Name] = nets
	return n.at("Annotate")
}

func (n *fakeNode) Attached(ctx context.Context, p cniserver.PodPort) error {
	n.mu.Lock()
	n.attached[p.HostIface] = p
	n.mu.Unlock()
	if n.hang != nil {
		n.hang <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return n.at("Attached")
}

func (n *fakeNode) Detached(_ context.Context, hostIface string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.at("Detached"); err != nil {
		return err
	}
	delete(n.attached, hostIface)
	return nil
}
