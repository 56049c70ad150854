package egressip

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Overlaps counts the pods that EgressIPs stand by for: those that they select and that another EgressIP serves, in a
// family that they have addresses of.
type Overlaps struct {
	perPod[overlap]
	standing map[string]*standby // by EgressIP that stands by
	news     map[string]struct{} // EgressIPs that stand by for others than before
}

// overlap is one pod's part: one EgressIP stands by for it while another serves it.
type overlap struct{ by, server string }

// standby is one EgressIP's sum.
type standby struct {
	pods    int
	servers map[string]int // pods by the EgressIP that serves them
}

// NewOverlaps has counted nothing yet.
func NewOverlaps() *Overlaps {
	o := &Overlaps{standing: map[string]*standby{}, news: map[string]struct{}{}}
	o.perPod = newPerPod(overlaps, o.count)
	return o
}

// overlaps are a pod's, each once, sorted.
func overlaps(w *world.View, p *world.Pod) []overlap {
	var out []overlap
	for _, f := range w.Config.Families() {
		for _, s := range w.Standbys(p, f) {
			for _, c := range s.For {
				out = append(out, overlap{s.By.Name, c.By.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b overlap) int {
		return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.server, b.server))
	})
	return slices.Compact(out)
}

func (o *Overlaps) count(list []overlap, n int) {
	for i, l := range list {
		o.news[l.by] = struct{}{}
		s := o.standing[l.by]
		if s == nil {
			s = &standby{servers: map[string]int{}}
			o.standing[l.by] = s
		}
		if i == 0 || list[i-1].by != l.by {
			s.pods += n
		}
		if s.servers[l.server] += n; s.servers[l.server] == 0 {
			delete(s.servers, l.server)
		}
		if s.pods == 0 {
			delete(o.standing, l.by)
		}
	}
}

// Pods is the number of pods for which any EgressIP stands by.
func (o *Overlaps) Pods() int { return len(o.lists) }

// Condition is Overlapped of an EgressIP, and the Event when it begins.
func (o *Overlaps) Condition(e *world.EgressIP) (world.Condition, []decide.Event) {
	s := o.standing[e.Name]
	if s == nil {
		return world.Condition{Type: ConditionOverlapped, Status: "False", Reason: ReasonNoOverlap,
			Message: "no other EgressIP serves a pod that this one selects"}, nil
	}
	c := world.Condition{Type: ConditionOverlapped, Status: "True", Reason: ReasonServedByOther,
		Message: s.String()}
	if condition(e, ConditionOverlapped).Status == "True" {
		return c, nil
	}
	return c, []decide.Event{{Warning: true, Reason: EventOverlap, Message: s.String()}}
}

// String names the EgressIPs that serve the most pods first.
func (s *standby) String() string {
	names := slices.SortedFunc(maps.Keys(s.servers), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.servers[b], s.servers[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, s.servers[name])
	}
	pods := "pods"
	if s.pods == 1 {
		pods = "pod"
	}
	return fmt.Sprintf("stands by for %d %s that it selects, because others serve them: %s; the oldest EgressIP that "+
		"is in force serves a pod", s.pods, pods, some(names))
}
