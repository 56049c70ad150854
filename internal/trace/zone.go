package trace

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// zone is one node's plan, indexed for walking.
type zone struct {
	node     string
	names    plan.Names
	state    *plan.State
	sets     map[string]*addressSet     // by OVN name
	groups   map[string]map[string]bool // by OVN name, the names of ports
	routers  map[string]*router
	switches map[string]*lswitch
	ports    map[string]switchPort // by switch port's name
	flows    map[int][]flow        // of the gateway bridge, by table
	local    map[netip.Addr]string // addresses of the host, with the device
	macs     map[string]string     // hardware addresses of router ports
	links    map[netip.Addr]string // gateway routers of networks beside the default one, with the port that leads there
	bound    map[nextHop]string    // next hops that are bound to a hardware address
	nftSets  map[string]*nftSet
	chains   map[plan.NFTChain]*chain
	hooks    map[string][]*chain // base chains, in the order in which they are passed
	// balancers by what they balance.
	balancers map[frontend]*balancer
	tables    Lookup // of the host's own; nil: not known
	// bridge is the gateway bridge, and uplink its port to outside, in braces.
	bridge, uplink string
}

// lswitch is a logical switch, as far as it does more than carry frames.
type lswitch struct {
	groups []string // of load balancers
	acls   []acl    // highest priority first
	qos    []qos    // highest priority first
}

type router struct {
	name     string
	policies []policy // highest priority first
	routes   []route
	nat      []nat
	networks map[string][]netip.Prefix // by router port
	groups   []string                  // of load balancers
	// forceSNAT: packets that got a destination from a load balancer of the router get the router's source.
	forceSNAT bool
}

// nextHop is an address beyond a router port.
type nextHop struct {
	port string
	addr netip.Addr
}

type policy struct {
	priority int
	match    match
	action   string
	nexthops []netip.Addr
	mark     int // 0 leaves the packet's
	id       string
}

type route struct {
	prefix  netip.Prefix
	src     bool
	nexthop netip.Addr // zero: connected
	discard bool
	port    string // of a connected route
}

// acl drops packets, rejects them or lets them pass, at one stage.
type acl struct {
	id       string
	priority int
	match    match
	action   string
	stage    aclStage
}

type aclStage int

const (
	aclEnters   aclStage = iota // a packet comes in by a port of the switch
	aclBalanced                 // the same, after the switch has balanced
	aclLeaves                   // a packet leaves by a port
)

// qos marks what comes in by a port of the switch.
type qos struct {
	id             string
	priority, mark int
	match          match
}

type nat struct {
	external netip.Addr
	logical  netip.Prefix
	match    match
	matches  bool // match is not empty
	priority int
	id       string
}

type switchPort struct {
	name, sw string
	ips      []netip.Addr
	secured  []netip.Addr // sources that may come in; nil is any
}

func (r *Reader) readZone(node string, s *plan.State) (*zone, error) {
	z := &zone{node: node, names: plan.DefaultNames(), state: s, sets: map[string]*addressSet{},
		groups:  map[string]map[string]bool{},
		routers: map[string]*router{}, switches: map[string]*lswitch{}, ports: map[string]switchPort{},
		local: map[netip.Addr]string{}, macs: map[string]string{}, bound: map[nextHop]string{},
		links: map[netip.Addr]string{},
		flows: map[int][]flow{}, balancers: map[frontend]*balancer{}}
	if err := r.indexDatabases(z); err != nil {
		return nil, err
	}
	for _, r := range z.routers {
		r.sortByRank()
	}
	for _, sw := range z.switches {
		slices.SortFunc(sw.qos, func(a, b qos) int {
			return firstNonZero(b.priority-a.priority, strings.Compare(a.id, b.id))
		})
		slices.SortFunc(sw.acls, func(a, b acl) int {
			return firstNonZero(b.priority-a.priority, strings.Compare(a.id, b.id))
		})
	}
	z.indexHost()
	return z, firstByText([]error{r.indexFlows(z), r.indexNFT(z)})
}

// indexDatabases indexes the rows of OVN. Of several errors it returns the one that is first by its text, so that it is
// the same each time.
func (r *Reader) indexDatabases(z *zone) error {
	var failed []error
	for id, row := range z.state.NB.Rows() {
		if err := r.readRow(z, id, row); err != nil {
			failed = append(failed, fmt.Errorf("nb %s: %w", id, err))
		}
	}
	for id, row := range z.state.SB.Rows() {
		if err := checkColumns(id, row); err != nil {
			failed = append(failed, fmt.Errorf("sb %s: %w", id, err))
		}
	}
	if len(failed) == 0 {
		failed = append(failed, z.addSets(z.state), z.addGroups(z.state), r.checkReferences(z))
	}
	return firstByText(failed)
}

// readRow indexes one row of the Northbound, if the tracer knows all of it.
func (r *Reader) readRow(z *zone, id plan.RowID, row plan.Row) error {
	if err := checkColumns(id, row); err != nil {
		return err
	}
	if err := z.checkPlaces(row); err != nil {
		return err
	}
	return r.indexRow(z, id, row)
}

// checkReferences says which row's match names a set or a group that is not there: ovn-controller makes no flow of it.
func (r *Reader) checkReferences(z *zone) error {
	var failed []error
	for id, row := range z.state.NB.Rows() {
		text, _ := row.Cols["match"].(string)
		m, _ := r.matches.parseOnce(text, parseMatch) // it was read before
		for _, name := range m.sets {
			if group, is := strings.CutPrefix(name, "@"); is && z.groups[group] == nil {
				failed = append(failed, fmt.Errorf("nb %s: match %q: there is no port group %s", id, text, group))
			} else if !is && z.sets[name] == nil {
				failed = append(failed, fmt.Errorf("nb %s: match %q: there is no address set %s", id, text, name))
			}
		}
	}
	return firstByText(failed)
}

// firstByText is the error with the least text, or nil.
func firstByText(failed []error) error {
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return slices.MinFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}

// checkPlaces refuses rows at places of the default network where Walk looks for none.
func (z *zone) checkPlaces(row plan.Row) error {
	n := z.names
	transit := plan.Switch(n.TransitSwitch())
	plain := []plan.RowID{plan.Switch(n.JoinSwitch()), transit, plan.Switch(n.ExternalSwitch(z.node))}
	name, _ := row.Cols["name"].(string)
	groups, _ := row.Cols["load_balancer_group"].([]plan.RowID)
	_, atSwitch := row.Cols["direction"]    // of an ACL, or a QoS row
	_, isACL := row.Cols["action"].(string) // or a policy
	_, isNAT := row.Cols["external_ip"]
	switch {
	case atSwitch && (row.Parent == transit || isACL && slices.Contains(plain, row.Parent)),
		isNAT && row.Parent == plan.Router(n.ClusterRouter()):
		return fmt.Errorf("the tracer does not walk such rows of %s", row.Parent)
	case len(groups) > 0 && (name == n.ClusterRouter() || slices.Contains(plain, plan.Switch(name))):
		return fmt.Errorf("the tracer does not walk load balancers of %s", name)
	}
	return nil
}

// indexRow files a row of the Northbound.
func (r *Reader) indexRow(z *zone, id plan.RowID, row plan.Row) error {
	c := &cells{cols: row.Cols}
	m, err := r.matches.parseOnce(c.textOf("match"), parseMatch)
	if err != nil {
		return err
	}
	switch id.Table {
	case "Logical_Router":
		z.routerFor(id).groups, z.routerFor(id).forceSNAT = c.balancerGroups(),
			c.optionsOf("options")["lb_force_snat_ip"] != ""
	case "Logical_Switch":
		z.switchFor(id).groups = c.balancerGroups()
	case "Address_Set":
		z.sets[c.textOf("name")] = &addressSet{addrs: map[netip.Addr]bool{}}
	case "Logical_Switch_Port":
		z.ports[c.textOf("name")] = switchPort{c.textOf("name"), row.Parent.Name, c.portAddresses("addresses"),
			c.portAddresses("port_security")}
	case "Port_Group":
		z.groups[c.textOf("name")] = map[string]bool{}
	case "Static_MAC_Binding":
		z.bound[nextHop{c.textOf("logical_port"), c.parseAddr(c.textOf("ip"))}] = c.textOf("mac")
	case "ACL":
		sw := z.switchFor(row.Parent)
		stage := aclEnters
		switch {
		case c.textOf("direction") == "to-lport":
			stage = aclLeaves
		case c.optionsOf("options")["apply-after-lb"] != "":
			stage = aclBalanced
		}
		sw.acls = append(sw.acls, acl{id.Name, c.rowPriority(), m, c.textOf("action"), stage})
	case "QoS":
		sw := z.switchFor(row.Parent)
		sw.qos = append(sw.qos, qos{id.Name, c.rowPriority(), c.packetMark("action", "mark"), m})
	case "Load_Balancer":
		z.addBalancer(id, row.Parent.Name, c)
	default:
		z.indexRouting(id, row, c, m)
	}
	return c.err
}

// indexRouting files what is a router's.
func (z *zone) indexRouting(id plan.RowID, row plan.Row, c *cells, m match) {
	switch id.Table {
	case "Logical_Router_Port":
		z.routerFor(row.Parent).addPort(c)
		z.macs[c.textOf("name")] = c.textOf("mac")
	case "Logical_Router_Policy":
		z.routerFor(row.Parent).addPolicy(id, c, m)
	case "Logical_Router_Static_Route":
		z.routerFor(row.Parent).addRoute(z, c)
	case "NAT":
		r := z.routerFor(row.Parent)
		r.nat = append(r.nat, nat{c.parseAddr(c.textOf("external_ip")), c.parsePrefix(c.textOf("logical_ip")), m,
			c.textOf("match") != "", c.rowPriority(), id.Name})
	}
}

func (z *zone) routerFor(id plan.RowID) *router {
	if z.routers[id.Name] == nil {
		z.routers[id.Name] = &router{name: id.Name, networks: map[string][]netip.Prefix{}}
	}
	return z.routers[id.Name]
}

func (z *zone) switchFor(id plan.RowID) *lswitch {
	if z.switches[id.Name] == nil {
		z.switches[id.Name] = &lswitch{}
	}
	return z.switches[id.Name]
}

func (r *router) addPort(c *cells) {
	port := c.textOf("name")
	for _, n := range c.listOf("networks") {
		p := c.parsePrefix(n)
		r.networks[port] = append(r.networks[port], p)
		r.routes = append(r.routes, route{prefix: p.Masked(), port: port})
	}
}

func (r *router) addPolicy(id plan.RowID, c *cells, m match) {
	p := policy{id: id.Name, priority: c.rowPriority(), match: m, action: c.textOf("action"),
		mark: c.packetMark("options", "pkt_mark")}
	for _, h := range c.listOf("nexthops") {
		p.nexthops = append(p.nexthops, c.parseAddr(h))
	}
	r.policies = append(r.policies, p)
}

// addRoute takes an output port for what the next hop says anyway: a gateway router's to the outside, of the router's
// own network, or the cluster router's to the gateway router of a network beside the default one.
func (r *router) addRoute(z *zone, c *cells) {
	own := strings.Replace(z.names.GatewayToExternal(z.node), z.names.GatewayRouter(z.node), r.name, 1)
	isLink := r.name == z.names.ClusterRouter() && strings.HasPrefix(c.textOf("output_port"), plan.LinksToNetworks)
	if out := c.textOf("output_port"); out != "" && out != own && !isLink {
		c.noteError(errors.New("unknown"), "output_port=%s", out)
	}
	to := route{prefix: c.parsePrefix(c.textOf("ip_prefix")), src: c.textOf("policy") == "src-ip"}
	if to.discard = c.textOf("nexthop") == plan.Discard; !to.discard {
		to.nexthop = c.parseAddr(c.textOf("nexthop"))
	}
	if r.routes = append(r.routes, to); isLink {
		z.links[to.nexthop] = c.textOf("output_port")
	}
}

// sortByRank puts what OVN would try first at the start. Rows of one rank keep no order in OVN; by id here, so that an
// answer is the same each time.
func (r *router) sortByRank() {
	slices.SortFunc(r.policies, func(a, b policy) int {
		return firstNonZero(b.priority-a.priority, strings.Compare(a.id, b.id))
	})
	slices.SortFunc(r.nat, func(a, b nat) int {
		return firstNonZero(b.natRank()-a.natRank(), strings.Compare(a.id, b.id))
	})
	slices.SortFunc(r.routes, func(a, b route) int {
		return firstNonZero(b.routeRank()-a.routeRank(), a.nexthop.Compare(b.nexthop))
	})
}

func firstNonZero(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

// routeRank is northd's: the prefix length counts three times, a connected route beats a static one, and both beat a
// source route.
func (r route) routeRank() int {
	n := r.prefix.Bits() * 6
	switch {
	case r.port != "":
		return n + 2
	case r.src:
		return n
	}
	return n + 1
}

// natRank is northd's for SNAT on a gateway router: the prefix length, plus a row's own priority where it has a match.
func (n nat) natRank() int {
	if n.matches {
		return 300 + n.priority
	}
	return n.logical.Bits() + 1
}
