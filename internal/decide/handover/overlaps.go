package handover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Overlaps counts the pods that objects of one kind stand by for: those that they are for, and that another one serves.
type Overlaps struct {
	PerPod[Overlap]
	// News are the objects that stand by for others than before, by key.
	News     map[string]struct{}
	standing map[string]*standby // by object that stands by
}

// Overlap is one pod's part: one object stands by for it while another, as people know it, serves it.
type Overlap struct{ By, Server string }

// standby is one object's sum.
type standby struct {
	pods    int
	servers map[string]int // pods by the object that serves them
}

// NewOverlaps has counted nothing yet. Of says for which objects of the kind a pod is claimed by others.
func NewOverlaps(of func(*world.View, *world.Pod) []Overlap) *Overlaps {
	o := &Overlaps{standing: map[string]*standby{}, News: map[string]struct{}{}}
	o.PerPod = NewPerPod(func(w *world.View, p *world.Pod) []Overlap { return distinct(of(w, p)) }, o.count)
	return o
}

// distinct are overlaps, each once, sorted.
func distinct(list []Overlap) []Overlap {
	slices.SortFunc(list, func(a, b Overlap) int {
		return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Server, b.Server))
	})
	return slices.Compact(list)
}

func (o *Overlaps) count(list []Overlap, n int) {
	for i, l := range list {
		o.News[l.By] = struct{}{}
		s := o.standing[l.By]
		if s == nil {
			s = &standby{servers: map[string]int{}}
			o.standing[l.By] = s
		}
		if i == 0 || list[i-1].By != l.By {
			s.pods += n
		}
		if s.servers[l.Server] += n; s.servers[l.Server] == 0 {
			delete(s.servers, l.Server)
		}
		if s.pods == 0 {
			delete(o.standing, l.By)
		}
	}
}

// Pods is the number of pods for which any object stands by.
func (o *Overlaps) Pods() int { return len(o.Lists) }

// Standing says for how many pods an object stands by, and names those that serve the most of them first: "stands by
// for 2 pods HOW, because others serve them: a (2)"; "" if it does so for none. How is what the pods are to the object.
func (o *Overlaps) Standing(key, how string) string {
	s := o.standing[key]
	if s == nil {
		return ""
	}
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
	return fmt.Sprintf("stands by for %d %s %s, because others serve them: %s", s.pods, pods, how, decide.Some(names))
}
