package world

import (
	"cmp"
	"slices"
	"time"
)

// MaxFronts is how many addresses beside cluster IPs, each with each of their ports, the Services of one namespace may
// ask for before younger ones are served at cluster IPs and node ports alone. Services of one namespace make work for
// all nodes, and delay others' pods that start in the meantime.
const MaxFronts = 4096

// fronting is a Service that asks for addresses beside cluster IPs.
type fronting struct {
	key     string
	created time.Time
	fronts  int // addresses times ports
}

func (s *Service) asFronting() fronting {
	if s == nil {
		return fronting{}
	}
	return fronting{s.Key(), s.Created, (len(s.LoadBalancerIPs) + len(s.ExternalIPs)) * len(s.Ports)}
}

func (f fronting) compareAge(o fronting) int {
	return cmp.Or(f.created.Compare(o.created), cmp.Compare(f.key, o.key))
}

// Fronts says whether a Service may be served at addresses beside its cluster IPs: whether the older ones of its
// namespace ask for fewer than MaxFronts. One that is alone may always be.
func (w *View) Fronts(s *Service) bool {
	w.noteRead(KindService, s.Key())
	in := w.fronting[s.Namespace]
	return in == nil || !in.without[s.Key()]
}

// frontings are the Services of one namespace that ask for addresses beside cluster IPs.
type frontings struct {
	byAge   []fronting
	without map[string]bool // that MaxFronts leaves without
}

// rankFronts follows what a Service asks for, and returns the others that may be served beside cluster IPs now and
// could not, or the reverse.
func (w *World) rankFronts(old, now *Service) (others []*Service) {
	was, is, service := old.asFronting(), now.asFronting(), cmp.Or(now, old)
	if was.fronts == is.fronts && (is.fronts == 0 || was.compareAge(is) == 0) {
		return nil
	}
	in := w.fronting[service.Namespace]
	if in == nil {
		in = &frontings{without: map[string]bool{}}
		w.fronting[service.Namespace] = in
	}
	if i, had := slices.BinarySearchFunc(in.byAge, was, fronting.compareAge); had && was.fronts > 0 {
		in.byAge = slices.Delete(in.byAge, i, i+1)
	}
	delete(in.without, service.Key())
	if is.fronts > 0 {
		i, _ := slices.BinarySearchFunc(in.byAge, is, fronting.compareAge)
		in.byAge = slices.Insert(in.byAge, i, is)
	}
	before := 0
	for _, f := range in.byAge {
		if without := before >= MaxFronts; without != in.without[f.key] {
			in.without[f.key] = without
			others = append(others, w.services[f.key])
		}
		before += f.fronts
	}
	if len(in.byAge) == 0 {
		delete(w.fronting, service.Namespace)
	}
	return slices.DeleteFunc(others, func(o *Service) bool { return o == now })
}

// claimedFrontends are all addresses and ports that a Service asks for; without those beside cluster IPs, where it may
// have none of them.
func (w *World) claimedFrontends(s *Service, fronts bool) []Frontend {
	return slices.DeleteFunc(s.Frontends(), func(f Frontend) bool { return !fronts && s.IsFront(f) })
}

// IsFront says whether an address and port of a Service is one beside its cluster IPs, and no node port.
func (s *Service) IsFront(f Frontend) bool {
	return f.IP.IsValid() && !slices.Contains(s.ClusterIPs, f.IP)
}

// updateFrontendClaims notes what a Service asks for now, and those others that what it asks for leaves room for or
// not.
func (w *World) updateFrontendClaims(old, now *Service) {
	before := w.claimedFrontends(old, old == nil || w.Fronts(old))
	others := w.rankFronts(old, now)
	w.claimAnew(cmp.Or(now, old).Key(), old, now, before,
		w.claimedFrontends(now, now == nil || w.Fronts(now)))
	for _, o := range others {
		may := w.Fronts(o)
		w.claimAnew(o.Key(), o, o, w.claimedFrontends(o, !may),
			w.claimedFrontends(o, may))
		w.noteChanged(KindService, o.Key())
	}
}
