package world

import (
	"net/netip"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
)

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
	networkNames   map[string][]string // of those that have a namespace, by namespace
	numbered       map[int][]string    // the networks that ask for a number, in the order in which they did
	namespaces     map[string]*Namespace
	pods           map[string]*Pod
	podsIn         map[string]*podGroup    // by namespace
	podsAt         map[podAddress]*Pod     // whose an address is by pods' own word
	rivals         map[podAddress][]*Pod   // of addresses that several say they have, all these; the first has it
	attachedAt     map[podAddress][]string // this node's attachments that have an address
	egressIPs      map[string]*EgressIP
	marked         map[int][]string       // EgressIPs by their mark
	selecting      map[string][]*EgressIP // by namespace, in order of precedence
	demands        map[string]*demands    // by namespace, of those that somebody asked about
	traffic        map[string]*Traffic
	destinations   map[string][2]destinations.Set      // by EgressIP with a selector of traffic that was asked about
	holdings       map[string]*Holding                 // by node
	heldAt         map[netip.Addr]map[HeldFor]struct{} // addresses that nodes report as held, in the controller alone
	unnamed        map[string]int                      // how many of these are unnamed, by node
	unsaid         map[netip.Addr][]unsaid             // unreported holders, in the controller alone
	ending         map[netip.Addr]struct{}             // those of unsaid for which any node is named no more
	own            *Holding                            // this node's, by its own knowledge; nil until it has any
	yielded        map[EgressAddress]*Yield
	overdue        map[EgressAddress]string // nodes
	tunnels        map[string]Tunnel        // by node
	clearing       bool                     // whether packets are led to cleared nodes alone
	clearance      map[string]Clearance     // by node
	formers        map[PodAddr][]Former     // by address of this node's pods
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

	kinds    map[Kind]kept                 // the tables of the kinds that keepKinds lists
	activity *Derived[string, [2]activity] // by EgressService and family
	overlap  *Derived[pair, [2]bool]       // by EgressIPs and family
	primary  *Derived[string, string]      // networks by namespace
	derived  []func(*World) (any bool)     // compute what is stale of each

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
		networkNames: map[string][]string{},
		numbered:     map[int][]string{},
		podsIn:       map[string]*podGroup{},
		podsAt:       map[podAddress]*Pod{},
		rivals:       map[podAddress][]*Pod{},
		attachedAt:   map[podAddress][]string{},
		marked:       map[int][]string{},
		selecting:    map[string][]*EgressIP{},
		demands:      map[string]*demands{},
		destinations: map[string][2]destinations.Set{},
		holdings:     map[string]*Holding{},
		heldAt:       map[netip.Addr]map[HeldFor]struct{}{},
		unnamed:      map[string]int{},
		unsaid:       map[netip.Addr][]unsaid{},
		ending:       map[netip.Addr]struct{}{},
		unreachable:  map[string]Unreachability{},
		notAnswering: map[string]bool{},
		yielded:      map[EgressAddress]*Yield{},
		overdue:      map[EgressAddress]string{},
		tunnels:      map[string]Tunnel{},
		clearance:    map[string]Clearance{},
		formers:      map[PodAddr][]Former{},
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

// keepKinds lists the kinds of objects that a world keeps in tables.
func (w *World) keepKinds() {
	w.namespaces = Keep(w, Spec[Namespace]{One: KindNamespace, Object: ref.Namespace,
		Key: (*Namespace).Key, Same: (*Namespace).sameNamespace, Changed: w.namespaceChanged})
	w.pods = Keep(w, Spec[Pod]{One: KindPod, All: KindPods, Object: ref.Pod,
		Key: (*Pod).Key, Same: (*Pod).sameState, Changed: w.podChanged, Decides: decidesPod()})
	keepAttachments(w)
	w.services = Keep(w, Spec[Service]{One: KindService, All: KindServices, Object: ref.Service,
		Key: (*Service).Key, Same: (*Service).sameSpec, Changed: w.serviceChanged, Decides: decidesService()})
	w.egressIPs = Keep(w, Spec[EgressIP]{One: KindEgressIP, All: KindEgressIPs, Object: ref.EgressIP,
		Key: (*EgressIP).Key, Same: (*EgressIP).sameSpec, Changed: w.egressIPChanged, Decides: decidesEgressIP()})
	w.egressServices = Keep(w, Spec[EgressService]{One: KindEgressService, All: KindEgressServices,
		Object: ref.EgressService, Key: (*EgressService).Key, Same: (*EgressService).sameSpec,
		Changed: w.egressServiceChanged, Decides: decidesEgressService()})
	w.traffic = Keep(w, Spec[Traffic]{One: KindTraffic, All: KindTraffics, Object: ref.EgressIPTraffic,
		Key: (*Traffic).Key, Same: (*Traffic).sameTraffic, Changed: w.trafficChanged})
	w.networks = Keep(w, Spec[Network]{One: KindNetwork, All: KindNetworks, Object: ref.LogicalNetwork,
		Key: (*Network).Key, Same: (*Network).sameNetwork, Changed: w.networkChanged})
	Keep(w, Spec[Node]{One: KindNode, Object: ref.Node, Key: (*Node).Key,
		NotesAll: true, Changed: w.nodeChanged, Decides: decidesNode()})
}

// keepDerivedTables lists what a world computes from these when somebody reads it.
func (w *World) keepDerivedTables() {
	w.derived = nil
	w.activity, w.overlap = keepDerived(w, derivesActivity()), keepDerived(w, derivesOverlap())
	w.primary = keepDerived(w, derivesPrimary())
}

func keepAttachments(w *World) {
	w.attachments = Keep(w, Spec[Attachment]{One: KindAttachment, All: KindAttachments, Object: ref.Pod,
		Key: (*Attachment).Key, Changed: w.attachmentChanged})
}
