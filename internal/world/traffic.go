package world

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/destinations"
)

// Traffic is an EgressIPTraffic: networks that EgressIPs select by its labels.
type Traffic struct {
	Name    string
	Labels  map[string]string
	Created time.Time
	// Networks are of both families.
	Networks destinations.Set
	// Problems say which network could not be read.
	Problems []string
}

// Key is the name.
func (t *Traffic) Key() string { return t.Name }

func (t *Traffic) sameTraffic(o *Traffic) bool {
	return maps.Equal(t.Labels, o.Labels) && t.sameDestinations(o)
}

// sameDestinations says whether two have the same for those who select them.
func (t *Traffic) sameDestinations(o *Traffic) bool {
	return t.Created.Equal(o.Created) && t.Networks.Equal(o.Networks) && slices.Equal(t.Problems, o.Problems)
}

// SetTraffic adds or replaces an EgressIPTraffic.
func (w *World) SetTraffic(t *Traffic) { Set(w, KindTraffic, t) }

// DelTraffic removes an EgressIPTraffic.
func (w *World) DelTraffic(name string) { Del[Traffic](w, KindTraffic, name) }

// Destinations are those to which an EgressIP serves its pods in a family: everything where it has no selector of
// traffic, or one that is not known.
func (w *View) Destinations(egressIP string, f Family) destinations.Set {
	w.noteRead(KindDestinations, egressIP)
	if e := w.egressIPs[egressIP]; e != nil {
		return w.destinationsOf(e)[f]
	}
	return destinations.Everything()
}

// TrafficLabels are those of an EgressIPTraffic, and whether there is one. It does not record.
func (w *World) TrafficLabels(name string) (all map[string]string, is bool) {
	if t := w.traffic[name]; t != nil {
		return t.Labels, true
	}
	return nil, false
}

// destinationsOf are the same, by family. They are kept until they change.
func (w *View) destinationsOf(e *EgressIP) [2]destinations.Set {
	if e.Traffic == nil {
		return [2]destinations.Set{destinations.Everything(), destinations.Everything()}
	}
	known, is := w.destinations[e.Name]
	if !is {
		known = w.selectedNetworks(e)
		w.destinations[e.Name] = known
	}
	return known
}

// selectedNetworks are the networks of all that counts of what an EgressIP's selector of traffic selects, by family.
func (w *View) selectedNetworks(e *EgressIP) [2]destinations.Set {
	var all [2][]netip.Prefix
	counts, _ := w.countedTraffic(e)
	for _, t := range counts {
		for _, p := range t.Networks {
			f := FamilyOf(p.Addr())
			all[f] = append(all[f], p)
		}
	}
	return [2]destinations.Set{destinations.Of(all[V4]...), destinations.Of(all[V6]...)}
}

// MaxNetworks is how many networks the EgressIPTraffics that count for one EgressIP have together.
const MaxNetworks = 20_000

// countedTraffic are the EgressIPTraffics that an EgressIP selects, by age: those that count, and those that would make
// too many networks, each of which counts as a whole or not at all. So one that comes takes nothing from those that
// were there.
func (w *View) countedTraffic(e *EgressIP) (counts, leftOut []*Traffic) {
	total := 0
	for _, t := range slices.SortedFunc(w.selectedTraffic(e), byAge) {
		if total+len(t.Networks) > MaxNetworks {
			leftOut = append(leftOut, t)
			continue
		}
		total += len(t.Networks)
		counts = append(counts, t)
	}
	return counts, leftOut
}

func byAge(a, b *Traffic) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

func (w *View) selectedTraffic(e *EgressIP) iter.Seq[*Traffic] {
	return func(yield func(*Traffic) bool) {
		for _, t := range w.traffic {
			if e.selectsTraffic(t) && !yield(t) {
				return
			}
		}
	}
}

// SelectedTraffic are the EgressIPTraffics that an EgressIP selects, by name. It does not record.
func (w *World) SelectedTraffic(e *EgressIP) []*Traffic {
	return slices.SortedFunc(w.selectedTraffic(e), func(a, b *Traffic) int { return cmp.Compare(a.Name, b.Name) })
}

// LeftOutTraffic are those of them that do not count, because with them the EgressIP would have more than MaxNetworks.
// It does not record.
func (w *World) LeftOutTraffic(e *EgressIP) []*Traffic {
	_, leftOut := w.countedTraffic(e)
	return leftOut
}

func (e *EgressIP) selectsTraffic(t *Traffic) bool {
	return t != nil && e.Traffic != nil && e.Traffic.Matches(labels.Set(t.Labels))
}

// trafficChanged forgets the destinations of EgressIPs that select an EgressIPTraffic or did.
func (w *World) trafficChanged(old, now *Traffic) {
	alike := old != nil && now != nil && old.sameDestinations(now)
	for name, e := range w.egressIPs {
		before, after := e.selectsTraffic(old), e.selectsTraffic(now)
		if before != after || after && !alike {
			delete(w.destinations, name)
			w.noteChanged(KindDestinations, name)
		}
	}
}

// reselectTraffic forgets the destinations of an EgressIP whose selector of traffic has changed.
func (w *World) reselectTraffic(old, now *EgressIP) {
	if old != nil && now != nil && sameSelector(old.Traffic, now.Traffic) {
		return
	}
	name := cmp.Or(now, old).Name
	delete(w.destinations, name)
	w.noteChanged(KindDestinations, name)
}

// sameSelector also tells no selector from one that selects everything, and this from one that selects nothing: their
// texts are the same.
func sameSelector(a, b labels.Selector) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	_, some := a.Requirements()
	_, others := b.Requirements()
	return some == others && a.String() == b.String()
}
