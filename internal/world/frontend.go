package world

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// claimant is a Service that asks for an address and port.
type claimant struct {
	key    string
	served time.Time // since when condition Served lists it; zero: it does not
}

// First returns the Service that gets an address and port of all that ask for it: one whose cluster IP it is, then one
// whose load balancer has the address; of equals the one that condition Served says has it already, then the oldest;
// "" if no Service asks.
func (w *View) First(f Frontend) string {
	w.noteRead(KindFrontend, f.String())
	return w.firstClaimant(f)
}

// IsFirst says whether a Service is First. Of many that ask for the same, a change of the first concerns two.
func (w *View) IsFirst(f Frontend, key string) bool {
	if w.reader != nil {
		w.noteRead(KindIsFirst, isFirst(f, key))
	}
	return w.firstClaimant(f) == key
}

func isFirst(f Frontend, key string) string { return f.String() + " " + key }

func (w *View) firstClaimant(f Frontend) string {
	if len(w.claims[f]) == 0 {
		return ""
	}
	return w.claims[f][0].key
}

// NodesAt are the nodes whose own address on the primary network that is, by name. Other addresses of a host may come
// and go: kube-vip and keepalived put a load balancer's address there. A node's claims beyond its record do not count:
// with them, it could take Services' addresses.
func (w *View) NodesAt(a netip.Addr) []string {
	w.noteRead(KindNodeAddress, a.String())
	return w.nodesAt[a]
}

// HostsAt are the nodes that say that their hosts have an address, on the primary network or beside it, by name. It is
// their word.
func (w *View) HostsAt(a netip.Addr) []string {
	w.noteRead(KindHostAddress, a.String())
	return w.hostsAt[a]
}

// GatewaysAt returns the nodes that say that an address is their default gateway's, by name.
func (w *View) GatewaysAt(a netip.Addr) []string {
	w.noteRead(KindGatewayAddress, a.String())
	return w.gatewaysAt[a]
}

// BalancersAt returns the Services whose load balancer has an address, by name.
func (w *View) BalancersAt(a netip.Addr) []string {
	w.noteRead(KindBalancerAddress, a.String())
	return w.balancersAt[a]
}

// ServicesAt returns the Services that ask for an address, or that have it as cluster IP, by name.
func (w *View) ServicesAt(a netip.Addr) []string {
	if w.reader != nil { // the controller asks for all egress IPs, and records nothing: without their texts
		w.noteRead(KindServiceAddress, a.String())
	}
	return w.servicesAt[a]
}

// allAddresses returns a Service's cluster IPs, then its load balancer's addresses and spec.externalIPs.
func (s *Service) allAddresses() []netip.Addr {
	if s == nil {
		return nil
	}
	return slices.Concat(s.ClusterIPs, s.LoadBalancerIPs, s.ExternalIPs)
}

// balancerAddresses returns the addresses of a Service's load balancer.
func (s *Service) balancerAddresses() []netip.Addr {
	if s == nil {
		return nil
	}
	return s.LoadBalancerIPs
}

// Frontends are all addresses and ports that a Service asks for, each once.
func (s *Service) Frontends() []Frontend {
	if s == nil {
		return nil
	}
	var out []Frontend
	seen := map[Frontend]bool{}
	add := func(f Frontend) {
		if !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	for _, p := range s.Ports {
		for _, ip := range slices.Concat(s.ClusterIPs, s.LoadBalancerIPs, s.ExternalIPs) {
			add(Frontend{ip, p.Protocol, p.Port})
		}
		if p.NodePort != 0 {
			add(Frontend{Protocol: p.Protocol, Port: p.NodePort})
		}
	}
	return out
}

// claimAnew notes what a Service asks for now. Readers are compiled again only where the first changes. Many may ask
// for the same in vain, and a change of one of them costs the others nothing.
func (w *World) claimAnew(key string, old, new *Service, was, is []Frontend) {
	stays := map[Frontend]bool{}
	if old.claimsLike(new) {
		if slices.Equal(was, is) {
			return // most changes are of endpoints
		}
		stays = intersectFrontends(was, is)
	}
	before := map[Frontend]string{}
	for _, f := range slices.Concat(was, is) {
		before[f] = w.firstClaimant(f)
	}
	for _, f := range was {
		if list := w.claims[f]; !stays[f] {
			w.setClaims(f, slices.DeleteFunc(slices.Clone(list), func(c claimant) bool { return c.key == key }))
		}
	}
	served, since := new.servedFrontends()
	for _, f := range is {
		if list := w.claims[f]; !stays[f] {
			now := claimant{key: key}
			if served[f] {
				now.served = since
			}
			i, _ := slices.BinarySearchFunc(list, now, func(a, b claimant) int {
				return w.compareClaimants(f, a, b, w.services[a.key], new)
			})
			w.setClaims(f, slices.Concat(list[:i], []claimant{now}, list[i:]))
		}
	}
	for _, f := range slices.Concat(was, is) {
		if now := w.firstClaimant(f); now != before[f] {
			w.noteChanged(KindFrontend, f.String())
			w.noteChanged(KindIsFirst, isFirst(f, before[f]))
			w.noteChanged(KindIsFirst, isFirst(f, now))
			before[f] = now
		}
	}
}

func (w *World) setClaims(f Frontend, list []claimant) {
	if w.claims[f] = list; len(list) == 0 {
		delete(w.claims, f)
	}
}

// claimsLike says whether two states of a Service rank it alike for each address and port that it asks for in both.
func (s *Service) claimsLike(o *Service) bool {
	return s != nil && o != nil && s.Created.Equal(o.Created) && slices.Equal(s.ClusterIPs, o.ClusterIPs) &&
		slices.Equal(s.LoadBalancerIPs, o.LoadBalancerIPs) && s.servedCondition().Same(o.servedCondition())
}

// intersectFrontends is what is in both lists, each of which has everything once.
func intersectFrontends(a, b []Frontend) map[Frontend]bool {
	in, out := map[Frontend]bool{}, map[Frontend]bool{}
	for _, f := range a {
		in[f] = true
	}
	for _, f := range b {
		out[f] = in[f]
	}
	return out
}

// compareClaimants orders Services that ask for the same: by their title to the address; then one that condition Served
// says has it, the one that says so latest first; then creation, namespace, name.
func (w *World) compareClaimants(f Frontend, a, b claimant, as, bs *Service) int {
	return cmp.Or(as.titleRank(f.IP)-bs.titleRank(f.IP), b.served.Compare(a.served), as.Created.Compare(bs.Created),
		cmp.Compare(as.Namespace, bs.Namespace), cmp.Compare(as.Name, bs.Name))
}

// titleRank ranks why a Service asks for an address, the best title first: its cluster IP, which the API server gave
// it; the address in status.loadBalancer, which a load balancer's controller wrote; spec.externalIPs, which its user
// wrote.
func (s *Service) titleRank(ip netip.Addr) int {
	switch {
	case slices.Contains(s.ClusterIPs, ip):
		return 0
	case slices.Contains(s.LoadBalancerIPs, ip):
		return 1
	}
	return 2
}

// noteNodeAddresses notes the addresses and networks that a node has now.
func (w *World) noteNodeAddresses(name string, old, new *Node) {
	w.relocateIn(w.nodesAt, KindNodeAddress, name, old.reservedAddresses(), new.reservedAddresses())
	w.relocateIn(w.hostsAt, KindHostAddress, name, old.reportedAddresses(), new.reportedAddresses())
	w.relocateIn(w.gatewaysAt, KindGatewayAddress, name, old.gatewaysOrNone(), new.gatewaysOrNone())
	w.updateNodeNetworks(name, old.hostableCIDRs(), new.hostableCIDRs())
}

func (w *World) relocateIn(index map[netip.Addr][]string, kind Kind, name string, was, is []netip.Addr) {
	if slices.Equal(was, is) {
		return
	}

	for _, a := range slices.Concat(was, is) {
		NoteInIndex(index, a, name, slices.Contains(is, a))
		w.noteChanged(kind, a.String())
	}
}

// reportedAddresses are all addresses that a node and its kubelet say its host has.
func (n *Node) reportedAddresses() []netip.Addr {
	if n == nil {
		return nil
	}
	return slices.Concat(n.primaryAddresses(), n.InternalIPs, n.HostAddrs)
}

func (n *Node) gatewaysOrNone() []netip.Addr {
	if n == nil {
		return nil
	}
	return n.Gateways
}

func (n *Node) primaryAddresses() []netip.Addr {
	if n == nil {
		return nil
	}
	var out []netip.Addr
	for _, p := range n.Primary {
		out = append(out, p.Addr())
	}
	return out
}
