package trace

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// zone is one node's plan, indexed for walking.
type zone struct {
	state   *plan.State
	sets    map[string]map[string]bool
	routers map[string]*router
	ports   map[string]switchPort // by switch port's name
	acls    []acl
	flows   map[int][]flow        // of the gateway bridge, by table
	local   map[netip.Addr]string // addresses of the host, with the device
	macs    map[string]string     // hardware addresses of router ports
	bound   map[netip.Addr]string // next hops that are bound to a hardware address
	// balancers by what they balance.
	balancers map[frontend]*balancer
	// bridge is the gateway bridge, and uplink its port to outside, in braces.
	bridge, uplink string
}

type router struct {
	name     string
	policies []policy // highest priority first
	routes   []route
	nat      []nat
	networks map[string][]netip.Prefix // by router port
}

type policy struct {
	priority      int
	match, action string
	nexthops      []netip.Addr
	mark          string
	id            string
}

type route struct {
	prefix  netip.Prefix
	src     bool
	nexthop netip.Addr // zero: connected
	port    string     // of a connected route
}

// acl drops what comes in by a port of the node switch.
type acl struct{ id, match string }

type nat struct {
	external netip.Addr
	logical  netip.Prefix
	match    string
	priority int
	id       string
}

type switchPort struct {
	name, sw string
	ips      []netip.Addr
}

func newZone(s *plan.State) *zone {
	z := &zone{state: s, sets: map[string]map[string]bool{}, routers: map[string]*router{}, ports: map[string]switchPort{}, local: map[netip.Addr]string{},
		macs: map[string]string{}, bound: map[netip.Addr]string{}, flows: map[int][]flow{}, balancers: map[frontend]*balancer{}}
	for id, row := range s.NB.Rows() {
		z.index(id, row)
	}
	for e := range s.SetElems.Rows() {
		if set := z.sets[plan.SetName(e.Set)]; set != nil {
			set[e.Addr] = true
		}
	}
	for _, r := range z.routers {
		r.sort()
	}
	z.indexHost()
	return z
}

func (z *zone) index(id plan.RowID, row plan.Row) {
	text := func(col string) string { s, _ := row.Cols[col].(string); return s }
	switch id.Table {
	case "Address_Set":
		z.sets[text("name")] = map[string]bool{}
	case "Logical_Switch_Port":
		z.ports[text("name")] = switchPort{text("name"), row.Parent.Name, addresses(row.Cols["addresses"])}
	case "Logical_Router_Port":
		z.router(row.Parent).connect(text("name"), row.Cols["networks"])
		z.macs[text("name")] = text("mac")
	case "Static_MAC_Binding":
		if ip, err := netip.ParseAddr(text("ip")); err == nil {
			z.bound[ip] = text("mac")
		}
	case "Logical_Router_Policy":
		z.router(row.Parent).addPolicy(id, row)
	case "Logical_Router_Static_Route":
		prefix, err := netip.ParsePrefix(text("ip_prefix"))
		via, err2 := netip.ParseAddr(text("nexthop"))
		if err == nil && err2 == nil {
			r := z.router(row.Parent)
			r.routes = append(r.routes, route{prefix: prefix, src: text("policy") == "src-ip", nexthop: via})
		}
	case "ACL":
		z.acls = append(z.acls, acl{id.Name, text("match")})
	case "Load_Balancer":
		z.addBalancer(id, row)
	case "NAT":
		z.router(row.Parent).addNAT(id, row)
	}
}

func (z *zone) router(id plan.RowID) *router {
	if z.routers[id.Name] == nil {
		z.routers[id.Name] = &router{name: id.Name, networks: map[string][]netip.Prefix{}}
	}
	return z.routers[id.Name]
}

func (r *router) connect(port string, networks any) {
	list, _ := networks.([]string)
	for _, n := range list {
		if p, err := netip.ParsePrefix(n); err == nil {
			r.networks[port] = append(r.networks[port], p)
			r.routes = append(r.routes, route{prefix: p.Masked(), port: port})
		}
	}
}

func (r *router) addPolicy(id plan.RowID, row plan.Row) {
	p := policy{id: id.Name}
	p.priority, _ = row.Cols["priority"].(int)
	p.match, _ = row.Cols["match"].(string)
	p.action, _ = row.Cols["action"].(string)
	hops, _ := row.Cols["nexthops"].([]string)
	for _, h := range hops {
		if a, err := netip.ParseAddr(h); err == nil {
			p.nexthops = append(p.nexthops, a)
		}
	}
	options, _ := row.Cols["options"].(map[string]string)
	p.mark = options["pkt_mark"]
	r.policies = append(r.policies, p)
}

func (r *router) addNAT(id plan.RowID, row plan.Row) {
	n := nat{id: id.Name}
	external, _ := row.Cols["external_ip"].(string)
	logical, _ := row.Cols["logical_ip"].(string)
	n.match, _ = row.Cols["match"].(string)
	n.priority, _ = row.Cols["priority"].(int)
	var err, err2 error
	n.external, err = netip.ParseAddr(external)
	n.logical, err2 = netip.ParsePrefix(logical)
	if err == nil && err2 == nil {
		r.nat = append(r.nat, n)
	}
}

// sort puts what OVN would try first at the start. Rows of one rank keep no order in OVN; by id here, so that an answer is the same each time.
func (r *router) sort() {
	slices.SortFunc(r.policies, func(a, b policy) int { return either(b.priority-a.priority, strings.Compare(a.id, b.id)) })
	slices.SortFunc(r.nat, func(a, b nat) int { return either(b.rank()-a.rank(), strings.Compare(a.id, b.id)) })
	slices.SortFunc(r.routes, func(a, b route) int { return either(b.rank()-a.rank(), a.nexthop.Compare(b.nexthop)) })
}

func either(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

// rank is northd's: the prefix length counts three times, a connected route beats a static one, and both beat a source route.
func (r route) rank() int {
	n := r.prefix.Bits() * 6
	switch {
	case r.port != "":
		return n + 2
	case r.src:
		return n
	}
	return n + 1
}

// rank is northd's for SNAT on a gateway router: the prefix length, plus a row's own priority where it has a match.
func (n nat) rank() int {
	if n.match != "" {
		return 300 + n.priority
	}
	return n.logical.Bits() + 1
}

// addresses reads a switch port's addresses column: "0a:58:… 10.244.1.5 fd00::5".
func addresses(col any) []netip.Addr {
	list, _ := col.([]string)
	var out []netip.Addr
	for _, entry := range list {
		for _, word := range strings.Fields(entry) {
			if p, err := netip.ParsePrefix(word); err == nil {
				out = append(out, p.Addr())
			} else if a, err := netip.ParseAddr(word); err == nil {
				out = append(out, a)
			}
		}
	}
	return out
}
