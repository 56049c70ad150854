package world

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Selecting are the EgressIPs that select a pod, in order of precedence, whether they serve it or not.
func (w *View) Selecting(p *Pod) []*EgressIP {
	if !p.isSelectable() {
		return nil
	}
	w.noteRead(KindPod, p.Key())
	list := w.selecting[p.Namespace]
	if len(list) == 0 {
		return nil
	}
	d := w.demands[p.Namespace]
	if d == nil {
		d = newDemands(list)
		w.demands[p.Namespace] = d
	}
	var out []*EgressIP
	for _, i := range d.candidateIndices(p) {
		if list[i].Pods.Matches(labels.Set(p.Labels)) {
			out = append(out, list[i])
		}
	}
	return out
}

// demands find, in a namespace's list of EgressIPs, those that may select a pod, by one label that the pod must have: a
// thousand EgressIPs for as many applications of one namespace cost each pod one look.
type demands struct {
	by   map[string]map[string][]int // by key and value of that label: indices in the list
	none []int                       // of those that demand no value
}

func newDemands(list []*EgressIP) *demands {
	d := &demands{by: map[string]map[string][]int{}}
	for i, e := range list {
		key, values := demandedLabel(e.Pods)
		if key == "" {
			d.none = append(d.none, i)
			continue
		}
		if d.by[key] == nil {
			d.by[key] = map[string][]int{}
		}
		for _, v := range values {
			d.by[key][v] = append(d.by[key][v], i)
		}
	}
	return d
}

// demandedLabel is a label that a selector demands, with the values that do; or no key.
func demandedLabel(s labels.Selector) (key string, values []string) {
	requirements, selectable := s.Requirements()
	if !selectable {
		return "", nil
	}
	for _, r := range requirements {
		if demandsValue(r) {
			return r.Key(), r.ValuesUnsorted()
		}
	}
	return "", nil
}

// candidateIndices are indices in the list, in its order.
func (d *demands) candidateIndices(p *Pod) []int {
	found := d.none
	for key, byValue := range d.by {
		if value, has := p.Labels[key]; has && len(byValue[value]) > 0 {
			found = append(slices.Clip(found), byValue[value]...)
		}
	}
	slices.Sort(found) // a no-op on none alone, which is in order
	return found
}
