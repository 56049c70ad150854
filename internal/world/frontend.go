package world

import (
	"cmp"
	"net/netip"
	"slices"
)

// First is the Service that gets an address and port of all that ask for it: one whose cluster IP it is, then the
// oldest; "" if none does.
func (w *View) First(f Frontend) string {
	w.saw(KindFrontend, f.String())
	if len(w.claims[f]) == 0 {
		return ""
	}
	return w.claims[f][0]
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

// reclaim notes what a Service asks for now. Those that ask for the same are compiled anew where another one is first
// than before: many may ask for the same in vain, and what one of them does costs the others nothing.
func (w *World) reclaim(key string, old, new *Service) (touched []Touch) {
	was, is := old.Frontends(), new.Frontends()
	stays := map[Frontend]bool{}
	if old != nil && new != nil && old.Created.Equal(new.Created) && slices.Equal(old.ClusterIPs, new.ClusterIPs) {
		stays = common(was, is)
	}
	note := func(f Frontend, i int, list []string) {
		if w.claims[f] = list; len(list) == 0 {
			delete(w.claims, f)
		}
		if i == 0 {
			touched = append(touched, Touch{KindFrontend, f.String()})
		}
	}
	for _, f := range was {
		if list := w.claims[f]; !stays[f] {
			i := slices.Index(list, key)
			note(f, i, slices.Concat(list[:i], list[i+1:]))
		}
	}
	for _, f := range is {
		if list := w.claims[f]; !stays[f] {
			i, _ := slices.BinarySearchFunc(list, new, func(o string, s *Service) int {
				return w.precedence(f, w.services[o], s)
			})
			note(f, i, slices.Concat(list[:i], []string{key}, list[i:]))
		}
	}
	return touched
}

// common is what is in both lists, each of which has everything once.
func common(a, b []Frontend) map[Frontend]bool {
	in, out := map[Frontend]bool{}, map[Frontend]bool{}
	for _, f := range a {
		in[f] = true
	}
	for _, f := range b {
		out[f] = in[f]
	}
	return out
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
