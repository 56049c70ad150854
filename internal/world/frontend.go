package world

import (
	"cmp"
	"net/netip"
	"slices"
)

// Claimants are the Services that ask for an address and port, the one that gets it first: one whose cluster IP it is,
// then the oldest.
func (w *View) Claimants(f Frontend) []string {
	w.saw(KindFrontend, f.String())
	return w.claims[f]
}

// NodesAt are the nodes whose own address on the primary network that is, by name. What else is on a host may come and
// go: kube-vip and keepalived put a load balancer's address there. What a node claims beside what is recorded of it
// does not count: with it, it could take Services' addresses.
func (w *View) NodesAt(a netip.Addr) []string {
	w.saw(KindNodeAddress, a.String())
	return w.nodesAt[a]
}

// HostsAt are the nodes that say that their hosts have an address, on the primary network or beside it, by name. It is
// their word.
func (w *View) HostsAt(a netip.Addr) []string {
	w.saw(KindHostAddress, a.String())
	return w.hostsAt[a]
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

// reclaim notes what a Service asks for now. Those that ask for the same are compiled anew.
func (w *World) reclaim(key string, old, new *Service) []Touch {
	was, is := old.Frontends(), new.Frontends()
	if old != nil && new != nil && old.Created.Equal(new.Created) && slices.Equal(was, is) &&
		slices.Equal(old.ClusterIPs, new.ClusterIPs) {
		return nil
	}
	var touched []Touch
	for _, f := range was {
		if w.claims[f] = without(w.claims[f], key); len(w.claims[f]) == 0 {
			delete(w.claims, f)
		}
		touched = append(touched, Touch{KindFrontend, f.String()})
	}
	for _, f := range is {
		w.claims[f] = slices.SortedFunc(slices.Values(append(without(w.claims[f], key), key)), func(a, b string) int {
			return w.precedence(f, w.services[a], w.services[b])
		})
		touched = append(touched, Touch{KindFrontend, f.String()})
	}
	return touched
}

// precedence is for Services that ask for the same: one whose cluster IP it is before others, then creation, namespace,
// name.
func (w *World) precedence(f Frontend, a, b *Service) int {
	own := func(s *Service) int {
		if slices.Contains(s.ClusterIPs, f.IP) {
			return 0
		}
		return 1
	}
	return cmp.Or(own(a)-own(b), a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name))
}

// relocate notes the addresses that a node has now.
func (w *World) relocate(name string, old, new *Node) []Touch {
	return append(relocateIn(w.nodesAt, KindNodeAddress, name, old.settled(), new.settled()),
		relocateIn(w.hostsAt, KindHostAddress, name, old.tells(), new.tells())...)
}

func relocateIn(index map[netip.Addr][]string, kind Kind, name string, was, is []netip.Addr) []Touch {
	if slices.Equal(was, is) {
		return nil
	}
	var touched []Touch
	for _, a := range slices.Concat(was, is) {
		note(index, a, name, slices.Contains(is, a))
		touched = append(touched, Touch{kind, a.String()})
	}
	return touched
}

// tells are all addresses that a node and its kubelet say its host has.
func (n *Node) tells() []netip.Addr {
	if n == nil {
		return nil
	}
	return slices.Concat(n.addresses(), n.InternalIPs, n.HostAddrs)
}

func (n *Node) addresses() []netip.Addr {
	if n == nil {
		return nil
	}
	var out []netip.Addr
	for _, p := range n.Primary {
		out = append(out, p.Addr())
	}
	return out
}

// without is a new list.
func without(list []string, s string) []string {
	var out []string
	for _, x := range list {
		if x != s {
			out = append(out, x)
		}
	}
	return out
}
