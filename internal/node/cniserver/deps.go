package cniserver

import (
	"context"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// PodPort is one attached pod: its OVS port and what the port's external_ids say.
type PodPort struct {
	Bridge    string // br-int
	HostIface string
	IfaceID   string // the logical switch port's name, <namespace>_<name>
	SandboxID string // the container ID of CNI
	Namespace string
	Name      string
	UID       string
	NetNS     string // path of the pod's network namespace
	IfName    string // CNI_IFNAME of its ADD; "" if an older agent answered that
	MAC       string
	IPs       []netip.Addr
	// Primary is its port in its namespace's own network; nil: the default network is all that it is in.
	Primary *PrimaryPort
	// Problem says what of it cannot be read, and what to do; "" where all can.
	Problem string
	// EgressPaused is the agent loop's: the pod started with outside traffic dropped.
	EgressPaused bool
}

// PrimaryPort is a pod's second port, which is in its namespace's own network.
type PrimaryPort struct {
	HostIface, IfaceID string
	Network            string // its name
	Definition         string // "namespace/name" of what describes it to the namespace
	MAC                string
	IPs                []netip.Addr
}

// hostIfaces are the names on the node of a pod's interfaces.
func (p PodPort) hostIfaces() []string {
	if p.Primary == nil {
		return []string{p.HostIface}
	}
	return []string{p.HostIface, p.Primary.HostIface}
}

// allIPs are a pod's addresses in all networks.
func (p PodPort) allIPs() []netip.Addr {
	if p.Primary == nil {
		return slices.Clone(p.IPs)
	}
	return slices.Concat(p.IPs, p.Primary.IPs)
}

// Attachments are the pods' ports in the local Open vSwitch. All calls are idempotent.
type Attachments interface {
	AddPodPort(ctx context.Context, p PodPort) error
	DelPodPort(ctx context.Context, hostIface string) error
	PodPorts(ctx context.Context) ([]PodPort, error)
	// WaitInstalled returns when ovn-controller has installed the port's flows.
	WaitInstalled(ctx context.Context, hostIface string) error
}

// PodInfo is what the API server says of a pod.
type PodInfo struct {
	UID         string
	HostNetwork bool
	// Refused says why it cannot start, by what the agent knows already; "": it can.
	Refused string
	// Network is the name of its namespace's own network; "": it has none.
	Network string
}

// PrimaryNetwork is a namespace's own network, as pods of this node have it.
type PrimaryNetwork struct {
	plan.Names
	Definition string         // "namespace/name" of what describes it to the namespace
	Subnets    []netip.Prefix // the node's, one of each family
	MTU        int
}

// Node is the agent's loop.
type Node interface {
	// Ready is nil when pods can be attached, else it says what is missing.
	Ready() error
	// Subnets are the node's pod subnets, one of each family at most.
	Subnets() []netip.Prefix
	// PrimaryNetwork is that of a namespace which has its own. It waits briefly for the node's subnets there; the error
	// says what is missing.
	PrimaryNetwork(ctx context.Context, namespace string) (*PrimaryNetwork, error)
	// FurtherNetworks are those beside the default one that the node has subnets of.
	FurtherNetworks(ctx context.Context) ([]string, error)
	// DefaultInside are the destinations that a pod with a network of its own reaches by the default one.
	DefaultInside() []netip.Prefix
	// SaidAddresses are those that pods of the node say they have in a network, by Kubernetes. After a boot some have
	// no port, and may get none for long (a volume is away).
	SaidAddresses(ctx context.Context, network string) ([]netip.Addr, error)
	// MTU is that of pods' interfaces.
	MTU() int
	// UserspaceDatapath says whether OVS forwards in userspace: pods then compute checksums themselves.
	UserspaceDatapath() bool
	// Pod waits briefly until the agent knows the pod (with that UID, if uid is not empty) and its namespace, else asks
	// the API server.
	Pod(ctx context.Context, namespace, name, uid string) (PodInfo, error)
	// Annotate writes the annotation k8s.ovn.org/pod-networks of a port's pod, and if the pod has its namespace's own
	// network, k8s.v1.cni.cncf.io/network-status. Without networks it removes them.
	Annotate(ctx context.Context, p PodPort, nets PodNetworks) error
	// Attached tells the loop of a new attachment and returns when the targets hold the plan with it.
	Attached(ctx context.Context, p PodPort) error
	// Detached is the reverse; one that the loop does not know is no error.
	Detached(ctx context.Context, hostIface string) error
}
