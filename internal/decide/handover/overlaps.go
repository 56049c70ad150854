package handover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Overlaps counts the pods that objects of one kind stand by for: those that they are for, and that another one serves.
type Overlaps struct {
	*PodList[Overlap]
	// News are the objects that stand by for others than before, by key.
	News     map[string]struct{}
	standing map[string]*standby // by object that stands by
}

// Overlap is one pod's part: one object, by its key, stands by for it while another decides about it.
type Overlap struct {
	By     string
	Server ref.Object
}

// standby is one object's sum.
type standby struct {
	pods    int
	servers map[ref.Object]int // pods by the object that decides about them
}

// NewOverlaps has counted no pod yet. Of says for which objects of the kind a pod is claimed by others.
func NewOverlaps(pods *Pods, of func(*world.View, *world.Pod) []Overlap) *Overlaps {
	o := &Overlaps{standing: map[string]*standby{}, News: map[string]struct{}{}}
	o.PodList = NewPodList(pods, func(w *world.View, p *world.Pod) []Overlap { return distinctOverlaps(of(w, p)) },
		o.countOverlaps)
	return o
}

// distinctOverlaps are overlaps, each once, sorted.
func distinctOverlaps(list []Overlap) []Overlap {
	slices.SortFunc(list, func(a, b Overlap) int {
		return cmp.Or(cmp.Compare(a.By, b.By), a.Server.Compare(b.Server))
	})
	return slices.Compact(list)
}

func (o *Overlaps) countOverlaps(list []Overlap, n int) {
	for i, l := range list {
		o.News[l.By] = struct{}{}
		s := o.standing[l.By]
		if s == nil {
			s = &standby{servers: map[ref.Object]int{}}
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

// Standby says for how many pods an object stands by, and who decides about them.
type Standby struct {
	Text   string // "stands by for 2 pods that it selects, because others serve them: a (2)"
	Reason string // of a condition: ServedByOther, or DroppedByOther where no other leads any to a node
	Others string // the others' part in a pod: "serves", or "decides about" where one drops its packets
}

// Standing says for whom an object stands by, those that decide about the most pods first; false if for nobody. How is
// the pods' relation to the object, and kind is the part of the others' names that a message leaves out.
func (o *Overlaps) Standing(w *world.View, key, how, kind string) (s Standby, is bool) {
	sum := o.standing[key]
	if sum == nil {
		return s, false
	}
	servers := slices.SortedFunc(maps.Keys(sum.servers), func(a, b ref.Object) int {
		return cmp.Or(cmp.Compare(sum.servers[b], sum.servers[a]), a.Compare(b))
	})
	var names []string
	dropping := 0
	for _, server := range servers {
		name, suffix := server.String(), ""
		if server.Kind == kind {
			name = server.Key()
		}
		if OnlyDrops(w, server, world.V4, world.V6) {
			dropping, suffix = dropping+1, droppedSuffix
		}
		names = append(names, fmt.Sprintf("%s (%d%s)", name, sum.servers[server], suffix))
	}
	s = Standby{Reason: decide.ReasonServedByOther, Others: "decides about"}
	verb := "decide about"
	switch dropping {
	case 0:
		s.Others, verb = "serves", "serve"
	case len(servers):
		s.Reason = decide.ReasonDroppedByOther
	}
	pods := "pods"
	if sum.pods == 1 {
		pods = "pod"
	}
	s.Text = fmt.Sprintf("stands by for %d %s %s, because others %s them: %s", sum.pods, pods, how, verb,
		decide.Some(names))
	return s, true
}

// droppedSuffix is said of an object that has no node to lead pods' packets to, after their number.
const droppedSuffix = ", whose packets it has dropped"
