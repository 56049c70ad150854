package egressservice

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// thing is what one EgressService alone can have: the label of hosts, or a source address.
type thing struct {
	label string
	ip    netip.Addr
}

// hasByStatus says whether an EgressService has a thing by its status.
func hasByStatus(s *world.EgressService, t thing) bool {
	if t.label != "" {
		return isHosted(s)
	}
	return slices.Contains(s.Sources(), t.ip)
}

func isHosted(s *world.EgressService) bool { return len(s.Items) > 0 }

// requestedThings are the things that an EgressService needs: its label, and one of the addresses of each family. One
// that cannot be served as it is written, whatever others leave to it, asks for nothing and keeps nothing from them: it
// cannot be read, its namespace has too many older ones, its Service is not one for a load balancer or has no address
// that could be a source, its label is too long, or nodeSelector and the Service's policy leave it no node. That a node
// is not well is no reason: another one would take its things for a moment's sake.
func requestedThings(w *world.View, key string) (out []thing) {
	s := w.EgressService(key)
	if s == nil || s.SourceIPBy != world.SourceLoadBalancerIP || !w.EgressServiceServed(key) {
		return nil
	}
	service := w.ServiceSpec(key)
	if service == nil || !service.LoadBalancer || len(s.Problems) > 0 || !w.MayName(s.Namespace, s.Table.String()) ||
		len(labelOf(s)) > maxLabelName {
		return nil
	}
	for _, f := range families {
		ips, _ := candidateSources(w, s, service, f)
		for _, ip := range ips {
			out = append(out, thing{ip: ip})
		}
	}
	if len(out) == 0 || !isHosted(s) && !hasNode(w, s, w.Service(key)) {
		return nil
	}
	return append(out, thing{label: labelOf(s)})
}

// hasNode says whether there is a node that can be the host when it is well.
func hasNode(w *world.View, s *world.EgressService, service *world.Service) bool {
	local := localOf(w.Config, service)
	return s.Nodes.Problem == "" && slices.ContainsFunc(w.Nodes(), func(name string) bool {
		n := w.Node(name)
		return n != nil && mismatchReason(s, local, n) == ""
	})
}

// sharing is which EgressServices ask for which things.
type sharing struct {
	of map[thing]map[string]struct{} // EgressServices that ask for a thing
	by map[string][]thing            // things that an EgressService asks for
	// gets is whether one without a host gets its label and an address, in one round: asked anew for each that is
	// younger, the answer would cost twice as much with each EgressService that shares an address.
	gets map[string]bool
}

func newSharing() *sharing {
	return &sharing{of: map[thing]map[string]struct{}{}, by: map[string][]thing{}, gets: map[string]bool{}}
}

// beginRound begins a round of decisions, of which all are from the same statuses.
func (x *sharing) beginRound() { clear(x.gets) }

// followRequests notes the resources that an EgressService asks for now, and returns all that ask for any of these, or
// of those that it asked for before.
func (x *sharing) followRequests(key string, asks []thing) (others []string) {
	for _, t := range x.by[key] {
		if delete(x.of[t], key); len(x.of[t]) == 0 {
			delete(x.of, t)
		}
	}
	for _, t := range slices.Concat(x.by[key], asks) {
		for other := range x.of[t] {
			others = append(others, other)
		}
	}
	if x.by[key] = asks; len(asks) == 0 {
		delete(x.by, key)
	}
	for _, t := range asks {
		if x.of[t] == nil {
			x.of[t] = map[string]struct{}{}
		}
		x.of[t][key] = struct{}{}
	}
	return others
}

// ownerOf is the EgressService that has a thing, of one and all that ask for it: the one that has it by its status,
// else the first by age that gets all it needs. So nothing changes hands because an older one comes, or is well again.
// One that asks for nothing has its own reason not to be served.
func (x *sharing) ownerOf(w *world.World, s *world.EgressService, t thing) string {
	owner := s
	for key := range x.of[t] {
		o := w.EgressService(key)
		if o == nil || len(x.by[s.Key()]) == 0 {
			continue
		}
		if x.takesPrecedence(w, o, owner, t) {
			owner = o
		}
	}
	return owner.Key()
}

// takesPrecedence says whether a thing is one's before it is another's. An older one is asked first what it gets
// itself, which depends on still older ones alone.
func (x *sharing) takesPrecedence(w *world.World, o, before *world.EgressService, t thing) bool {
	if hasByStatus(o, t) != hasByStatus(before, t) {
		return hasByStatus(o, t)
	}
	return o.ByAge(before) < 0 && (isHosted(o) || x.canBeServed(w, o))
}

// canBeServed says whether one without a host gets its label and an address.
func (x *sharing) canBeServed(w *world.World, o *world.EgressService) bool {
	key := o.Key()
	if gets, known := x.gets[key]; known {
		return gets
	}
	gets := func(t thing) bool { return x.ownerOf(w, o, t) == key }
	x.gets[key] = gets(thing{label: labelOf(o)}) &&
		slices.ContainsFunc(x.by[key], func(t thing) bool { return t.label == "" && gets(t) })
	return x.gets[key]
}
