package world

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
)

// A Service's author decides which labels its selector asks for, and how many.
const (
	mostAsked   = 16  // of one selector are looked at, for the one that leaves the fewest pods
	mostIndexed = 256 // of a namespace; then it begins again
)

// podGroup is the pods of a namespace. It finds the pods of a selector without a look at the others, as far as the
// selector demands a value of a label: the cost of a Service must not depend on other pods.
type podGroup struct {
	pods map[string]*Pod
	// labelled is by key and value of those labels that somebody asked for; then by pod.
	labelled map[string]map[string]map[string]*Pod
}

func newPodGroup() *podGroup {
	return &podGroup{pods: map[string]*Pod{}, labelled: map[string]map[string]map[string]*Pod{}}
}

func (g *podGroup) addPod(p *Pod) {
	g.pods[p.Key()] = p
	for key, byValue := range g.labelled {
		addLabelled(byValue, key, p)
	}
}

func addLabelled(byValue map[string]map[string]*Pod, key string, p *Pod) {
	value, has := p.Labels[key]
	if !has {
		return
	}
	if byValue[value] == nil {
		byValue[value] = map[string]*Pod{}
	}
	byValue[value][p.Key()] = p
}

func (g *podGroup) removePod(p *Pod) {
	delete(g.pods, p.Key())
	for key, byValue := range g.labelled {
		if value, has := p.Labels[key]; has {
			if delete(byValue[value], p.Key()); len(byValue[value]) == 0 {
				delete(byValue, value)
			}
		}
	}
}

// indexByLabel is an index of the pods by the values of a label.
func (g *podGroup) indexByLabel(key string) map[string]map[string]*Pod {
	byValue, is := g.labelled[key]
	if !is {
		if len(g.labelled) >= mostIndexed {
			clear(g.labelled)
		}
		byValue = map[string]map[string]*Pod{}
		g.labelled[key] = byValue
		for _, p := range g.pods {
			addLabelled(byValue, key, p)
		}
	}
	return byValue
}

// selectedPods yields the pods that a selector selects, in no order.
func (g *podGroup) selectedPods(s labels.Selector) iter.Seq[*Pod] {
	return func(yield func(*Pod) bool) {
		if g == nil {
			return
		}
		for _, pods := range g.candidatePods(s) {
			for _, p := range pods {
				if p.isSelectable() && s.Matches(labels.Set(p.Labels)) && !yield(p) {
					return
				}
			}
		}
	}
}

// candidatePods are the pods among which those are that a selector selects: by the label of which the fewest have a
// value that it demands; all, where it demands none.
func (g *podGroup) candidatePods(s labels.Selector) []map[string]*Pod {
	best, fewest := []map[string]*Pod{g.pods}, len(g.pods)
	requirements, selectable := s.Requirements()
	if !selectable {
		return nil
	}
	asked := 0
	for _, r := range requirements {
		if asked == mostAsked {
			break
		}
		if !demandsValue(r) {
			continue
		}
		asked++
		byValue := g.indexByLabel(r.Key())
		var found []map[string]*Pod
		n := 0
		for value := range r.Values() {
			found, n = append(found, byValue[value]), n+len(byValue[value])
		}
		if n <= fewest {
			best, fewest = found, n
		}
	}
	return best
}

// demandsValue says whether a requirement is for certain values of a label.
func demandsValue(r labels.Requirement) bool {
	switch r.Operator() { // as package labels spells In, Equals and DoubleEquals
	case "in", "=", "==":
		return true
	}
	return false
}

// isSelectable says whether an EgressIP can select the pod.
func (p *Pod) isSelectable() bool { return !p.HostNetwork && !p.Completed }

// notePodsSelected notes the pods of a namespace that any of some selectors selects.
func (w *World) notePodsSelected(ns string, selectors ...labels.Selector) {
	for _, s := range selectors {
		for p := range w.podsIn[ns].selectedPods(s) {
			w.noteChanged(KindPod, p.Key())
		}
	}
}
