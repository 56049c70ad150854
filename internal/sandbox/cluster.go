package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a sandbox that exists.
type Cluster struct {
	layout layout
	state  state
}

// Load returns the sandbox of this name. Of the options, Name and StateDir are read; all others are the sandbox's own.
func Load(o Options) (*Cluster, error) {
	s, err := readState(newLayout(o))
	if err != nil {
		return nil, err
	}
	return &Cluster{layout: newLayout(s.Options), state: s}, nil
}

// Options are those that the sandbox was started with.
func (c *Cluster) Options() Options { return c.layout.options }

// Kubeconfig is the path of the cluster administrator's, for use on this machine.
func (c *Cluster) Kubeconfig() string { return c.layout.adminKubeconfig() }

// APIURL is the API server as everything on the fabric reaches it.
func (c *Cluster) APIURL() string { return c.layout.apiURL() }

// Datapath is OVS' on the nodes: netdev (userspace) or system (kernel).
func (c *Cluster) Datapath() string { return c.state.Datapath }

// Member is a node or an external host.
type Member struct {
	Name string       `json:"name"`
	IPs  []netip.Addr `json:"ips"` // on the primary network, IPv4 first
	// Secondary are the addresses on the secondary networks, in their order: those of eth1 first.
	Secondary [][]netip.Addr `json:"secondary,omitempty"`
}

// Nodes lists the nodes in their order: the first ones run the controllers.
func (c *Cluster) Nodes() []Member { return membersOf(c.layout.nodeEndpoints()) }

// ExternalHosts lists the hosts outside the cluster.
func (c *Cluster) ExternalHosts() []Member { return membersOf(c.layout.hostEndpoints()) }

func membersOf(endpoints []endpoint) []Member {
	list := []Member{}
	for _, e := range endpoints {
		m := Member{Name: e.name, IPs: e.ips}
		for _, link := range e.secondary {
			var ips []netip.Addr
			for _, p := range link.ips {
				ips = append(ips, p.Addr())
			}
			m.Secondary = append(m.Secondary, ips)
		}
		list = append(list, m)
	}
	return list
}

// FabricNetns and FabricBridge are where every packet on the primary network passes: for captures.
func (c *Cluster) FabricNetns() string { return c.layout.fabricNetns() }

// FabricBridge is the bridge inside FabricNetns.
func (c *Cluster) FabricBridge() string { return bridge }

// SecondaryBridge is the bridge inside FabricNetns of the network of eth<i>, from 1.
func (c *Cluster) SecondaryBridge(i int) string { return secondaryBridge(i) }

func (c *Cluster) allNodes() []node {
	var nodes []node
	for i, e := range c.layout.nodeEndpoints() {
		nodes = append(nodes, node{endpoint: e, layout: c.layout, number: i + 1, datapath: c.state.Datapath})
	}
	return nodes
}

// Status is what `egret-sandbox status -o json` prints.
type Status struct {
	Kubeconfig    string       `json:"kubeconfig"`
	Nodes         []NodeStatus `json:"nodes"`
	ExternalHosts []Member     `json:"externalHosts"`
	Networks      []Network    `json:"networks"` // the primary one first, then those of eth1, eth2, ...
}

// NodeStatus is a node and whether Kubernetes says it is Ready.
type NodeStatus struct {
	Member
	Ready bool `json:"ready"`
}

// Network is a network of the fabric.
type Network struct {
	Name    string         `json:"name"`
	Subnets []netip.Prefix `json:"subnets"`
}

// Status looks at the sandbox now. A control plane that does not answer within 3 s means nodes that are not ready.
func (c *Cluster) Status(ctx context.Context) Status {
	ready := c.readyNodes(ctx)
	s := Status{Kubeconfig: c.Kubeconfig(), Nodes: []NodeStatus{}, ExternalHosts: c.ExternalHosts()}
	for _, m := range c.Nodes() {
		s.Nodes = append(s.Nodes, NodeStatus{m, ready[m.Name]})
	}
	s.Networks = []Network{networkOf("primary", c.layout.primary)}
	for i, subnets := range c.layout.secondary {
		s.Networks = append(s.Networks, networkOf(fmt.Sprint("secondary-", i+1), subnets))
	}
	return s
}

func networkOf(name string, subnets []subnet) Network {
	n := Network{Name: name}
	for _, s := range subnets {
		n.Subnets = append(n.Subnets, s.prefix)
	}
	return n
}

func (c *Cluster) readyNodes(ctx context.Context) map[string]bool {
	ready := map[string]bool{}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	client, err := c.Client()
	if err != nil {
		return ready
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return ready
	}
	for i := range list.Items {
		ready[list.Items[i].Name] = checkReady(&list.Items[i]) == nil
	}
	return ready
}
