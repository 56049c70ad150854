package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/destinations"
)

// World is all tables, with the methods that change them. It is not safe for concurrent use: one loop owns it. It also
// has the methods of a View: called on a World they record nothing.
type World struct {
	View
}

// tables are what the objects and facts are kept in, and the indexes over them.
type tables struct {
	found          *Host                   // as it was read
	host           *Host                   // with the addresses that are the node's own
	said           map[string]*Node        // as the Nodes have it
	nodes          map[string]*Node        // the believed part of them
	nodeNames      []string                // their names, sorted
	assetsOf       map[asset][]string      // the nodes that claim it, in the order in which they did
	placed         map[netip.Addr][]string // EgressIPs whose statuses give an address to a node
	networks       map[string]*Network
	numbered       map[int][]string // the networks that ask for a number, in the order in which they did
	namespaces     map[string]*Namespace
	pods           map[string]*Pod
	podsIn         map[string]*podGroup    // by namespace
	podsAt         map[podAddress]*Pod     // whose an address is by pods' own word
	rivals         map[podAddress][]*Pod   // of addresses that several say they have, all these; the first has it
	attachedAt     map[podAddress][]string // this node's attachments that have an address
	egressIPs      map[string]*EgressIP
	selecting      map[string][]*EgressIP // by namespace, in order of precedence
	demands        map[string]*demands    // by namespace, of those that somebody asked about
	traffic        map[string]*Traffic
	destinations   map[string][2]destinations.Set      // by EgressIP with a selector of traffic that was asked about
	holdings       map[string]*Holding                 // by node
	heldAt         map[netip.Addr]map[HeldFor]struct{} // addresses that nodes report as held, in the controller alone
	unsaid         map[netip.Addr][]unsaid             // unreported holders, in the controller alone
	ending         map[netip.Addr]struct{}             // those of unsaid for which any node is named no more
	own            *Holding                            // this node's, by its own knowledge; nil until it has any
	yielded        map[EgressAddress]*Yield
	overdue        map[EgressAddress]string // nodes
	tunnels        map[string]Tunnel        // by node
	clearing       bool                     // whether packets are led to cleared nodes alone
	clearance      map[string]Clearance     // by node
	formers        map[netip.Addr][]Former  // by address of this node's pods
	attachments    map[string]*Attachment
	services       map[string]*Service
	egressServices map[string]*EgressService
	egressHosts    map[string]struct{}       // nodes that statuses of EgressServices have named, HostAll among them
	endpoints      map[string]*endpoints     // by namespace, of those that have EgressServices
	claims         map[Frontend][]claimant   // by address and port: the Services that ask for it
	fronting       map[string]*frontings     // by namespace: its Services' addresses, without cluster IPs
	nodesAt        map[netip.Addr][]string   // the nodes that have an address
	servicesAt     map[netip.Addr][]string   // the Services that ask for an address
	hostsAt        map[netip.Addr][]string   // the nodes that say that their hosts have an address
	gatewaysAt     map[netip.Addr][]string   // the nodes whose default gateway has an address
	balancersAt    map[netip.Addr][]string   // the Services whose load balancer has an address
	nodesIn        map[netip.Prefix]members  // the nodes that have an address in a network
	lengths        [129]int                  // how many keys of nodesIn have a length
	unreachable    map[string]Unreachability // by node
	notAnswering   map[string]bool           // nodes

	kinds     map[Kind]kept                 // the tables of the kinds that keepKinds lists
	activity  *Derived[string, [2]activity] // by EgressService and family
	overlap   *Derived[pair, [2]bool]       // by EgressIPs and family
	overclaim *Derived[string, bool]        // by node
	primary   *Derived[string, string]      // networks by namespace
	derived   []func(*World) (any bool)     // compute what is stale of each

	followers []func(Entry)
	sources   map[Entry]*source // that Readers have read
}

// New is a world with nothing in it.
func New(self string, c *Config) *World {
	w := &World{View{Self: self, Config: c, tables: newTables()}}
	w.keepKinds()
	w.keepDerivedTables()
	Set(w, KindNetwork, c.DefaultNetwork())
	return w
}

func newTables() *tables {
	return &tables{
		said:         map[string]*Node{},
		nodes:        map[string]*Node{},
		assetsOf:     map[asset][]string{},
		placed:       map[netip.Addr][]string{},
		numbered:     map[int][]string{},
		podsIn:       map[string]*podGroup{},
		podsAt:       map[podAddress]*Pod{},
		rivals:       map[podAddress][]*Pod{},
		attachedAt:   map[podAddress][]string{},
		selecting:    map[string][]*EgressIP{},
		demands:      map[string]*demands{},
		destinations: map[string][2]destinations.Set{},
		holdings:     map[string]*Holding{},
		heldAt:       map[netip.Addr]map[HeldFor]struct{}{},
		unsaid:       map[netip.Addr][]unsaid{},
		ending:       map[netip.Addr]struct{}{},
		unreachable:  map[string]Unreachability{},
		notAnswering: map[string]bool{},
		yielded:      map[EgressAddress]*Yield{},
		overdue:      map[EgressAddress]string{},
		tunnels:      map[string]Tunnel{},
		clearance:    map[string]Clearance{},
		formers:      map[netip.Addr][]Former{},
		claims:       map[Frontend][]claimant{},
		fronting:     map[string]*frontings{},
		nodesAt:      map[netip.Addr][]string{},
		servicesAt:   map[netip.Addr][]string{},
		hostsAt:      map[netip.Addr][]string{},
		gatewaysAt:   map[netip.Addr][]string{},
		balancersAt:  map[netip.Addr][]string{},
		nodesIn:      map[netip.Prefix]members{},
		egressHosts:  map[string]struct{}{},
		endpoints:    map[string]*endpoints{},
		kinds:        map[Kind]kept{},
		sources:      map[Entry]*source{},
	}
}

// Host is this host's facts; nil until they were read.
func (w *View) Host() *Host {
	w.noteRead(KindHost, "")
	return w.host
}

// SetHost replaces the host's facts.
func (w *World) SetHost(h *Host) {
	w.found = h
	w.settleHost()
}

func (h *Host) equalHost(o *Host) bool {
	return h.UplinkMAC == o.UplinkMAC && h.MTU == o.MTU && slices.Equal(h.Primary, o.Primary) &&
		slices.Equal(h.Addrs, o.Addrs) && slices.Equal(h.Gateways, o.Gateways) && slices.EqualFunc(h.Links, o.Links,
		Link.equalLink) && slices.EqualFunc(h.Tables, o.Tables, HostTable.equalTable)
}

// Zone is this node and its host, once both are known well enough to have a logical network: an id, pod subnets, and an
// uplink. Nothing that belongs to that network can be compiled before.
func (w *View) Zone() (n *Node, h *Host, ok bool) {
	n, h = w.Node(w.Self), w.Host()
	return n, h, n != nil && h != nil && n.ID != 0 && len(n.Subnets) > 0
}

// Nodes lists all nodes by name. The caller does not change the list, and drops it when a node comes or goes.
func (w *View) Nodes() []string {
	w.noteRead(KindNodes, "")
	return w.nodeNames
}

// Node is a node, or nil.
func (w *View) Node(name string) *Node {
	w.noteRead(KindNode, name)
	return w.nodes[name]
}

// SetNode adds or replaces a node. Node returns the part of it that is believed, and of others.
func (w *World) SetNode(n *Node) { Set(w, KindNode, n.orBefore(w.said[n.Name])) }

// nodeChanged follows what the Nodes say, and who is believed by it.
func (w *World) nodeChanged(old, now *Node) {
	if now == nil {
		w.nodeGone(old.Name)
		return
	}
	others := w.noteClaims(now.Name, now)
	w.putNode(w.withoutDisputed(now))
	for _, name := range others {
		w.putNode(w.withoutDisputed(w.said[name]))
	}
}

func (w *World) putNode(n *Node) {
	old := w.nodes[n.Name]
	w.nodes[n.Name] = n

	if n.Name == w.Self {
		w.settleHost()
	} else if w.Self == "" && (old == nil || old.BootID != n.BootID) {
		w.recheckBoot(n.Name)
	}
	if old == nil {
		at, _ := slices.BinarySearch(w.nodeNames, n.Name)
		w.nodeNames = slices.Insert(w.nodeNames, at, n.Name)
		w.noteWordOf(n.Name)
		w.noteNodeAddresses(n.Name, nil, n)
		w.noteChanged(KindNode, n.Name)
		w.noteChanged(KindSubnets, n.Name)
		w.noteChanged(KindNodes, "")
		return
	}
	if old.sameNode(n) {
		return
	}
	w.noteWordOf(n.Name)
	w.noteNodeAddresses(n.Name, old, n)
	w.noteChanged(KindNode, n.Name)
	if !slices.Equal(old.Subnets, n.Subnets) || !maps.EqualFunc(old.Further, n.Further, NodeNetwork.sameSubnets) {
		w.noteChanged(KindSubnets, n.Name)
	}
}

// DelNode removes a node.
func (w *World) DelNode(name string) { Del[Node](w, KindNode, name) }

func (w *World) nodeGone(name string) {
	old := w.nodes[name]
	delete(w.nodes, name)
	at, _ := slices.BinarySearch(w.nodeNames, name)
	w.nodeNames = slices.Delete(w.nodeNames, at, at+1)
	w.noteWordOf(name)
	w.noteNodeAddresses(name, old, nil)
	w.noteChanged(KindNode, name)
	w.noteChanged(KindSubnets, name)
	w.noteChanged(KindNodes, "")
	for _, other := range w.noteClaims(name, nil) {
		w.putNode(w.withoutDisputed(w.said[other]))
	}
}

// sameNode compares nodes: a kubelet writes its status every few seconds, and most of it concerns nobody here.
func (n *Node) sameNode(o *Node) bool {
	return n.UID == o.UID && n.ID == o.ID && n.Ready == o.Ready && n.BootID == o.BootID && n.Deleting == o.Deleting &&
		n.Cordoned == o.Cordoned && n.LetsExternalIPs == o.LetsExternalIPs &&
		n.CordonBoot == o.CordonBoot && n.Unschedulable == o.Unschedulable &&
		n.UplinkMAC == o.UplinkMAC && n.ChassisID == o.ChassisID &&
		maps.Equal(n.Labels, o.Labels) && slices.Equal(n.Subnets, o.Subnets) && slices.Equal(n.Primary, o.Primary) &&
		slices.Equal(n.InternalIPs, o.InternalIPs) &&
		slices.Equal(n.HostAddrs, o.HostAddrs) && slices.Equal(n.CIDRs, o.CIDRs) &&
		slices.Equal(n.Confirmed, o.Confirmed) && slices.Equal(n.Gateways, o.Gateways) &&
		slices.Equal(n.Problems, o.Problems) && slices.Equal(n.Join, o.Join) && slices.Equal(n.Transit, o.Transit) &&
		n.Record.Equal(o.Record) &&
		maps.EqualFunc(n.Further, o.Further, NodeNetwork.sameSubnets)
}

// Attachments lists the pods that have a port on this node, "namespace/name".
func (w *View) Attachments() []string {
	w.noteRead(KindAttachments, "")
	return slices.Sorted(maps.Keys(w.attachments))
}

// Attachment is a pod's port on this node, or nil.
func (w *View) Attachment(key string) *Attachment {
	w.noteRead(KindAttachment, key)
	return w.attachments[key]
}

// SetAttachment adds or replaces a pod's port.
func (w *World) SetAttachment(a *Attachment) { Set(w, KindAttachment, a) }

// DelAttachment removes a pod's port, unless a newer one of the same pod has taken its place.
func (w *World) DelAttachment(key, hostIface string) {
	if a := w.attachments[key]; a == nil || a.HostIface != hostIface {
		return
	}
	Del[Attachment](w, KindAttachment, key)
}

// ByPrecedence is the one order of precedence: creation, then name.
func ByPrecedence(a, b *EgressIP) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}
