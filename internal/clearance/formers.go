package clearance

import (
	"slices"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/world"
)

// former is a claim that has ended. Nodes that were not asked since may still translate by it.
type former struct {
	by         []world.Claimant // these need not wait: it was one's of them
	to         destinations.Set
	end        moment
	everywhere bool     // any node may translate by it
	at         []string // else these
	// unclaimed: it was no claim, but what nodes may know of the address, and take for one of an object that comes.
	// They are asked only where another claim begins.
	unclaimed bool
}

// mostFormers bounds the former claims to one address. More of them become one claim of nobody.
const mostFormers = 32

// noteEnd notes a claim that has ended. Claims of one object become one, and so do those of all objects that are gone:
// the list of an address stays short.
func (m *Machine) noteEnd(at world.PodAddr, f former) {
	a := m.byAddr[at]
	gone := func(o former) bool { return len(m.existing(o.by)) != len(o.by) }
	if all := a.formers; slices.ContainsFunc(all, gone) {
		a.formers = nil
		for _, o := range all {
			o.by = m.existing(o.by)
			a.addFormer(o)
		}
	}
	f.by = m.existing(f.by)
	if a.addFormer(f); len(a.formers) > mostFormers {
		a.joinFormers()
	}
}

// addFormer adds a former claim to one of the same objects and nodes, or to the list.
func (a *address) addFormer(f former) {
	same := slices.IndexFunc(a.formers, func(x former) bool {
		return x.everywhere == f.everywhere && x.unclaimed == f.unclaimed && slices.Equal(x.at, f.at) &&
			slices.Equal(x.by, f.by)
	})
	if same < 0 {
		a.formers = append(a.formers, f)
		return
	}
	a.formers[same].to, a.formers[same].end = a.formers[same].to.Union(f.to), max(a.formers[same].end, f.end)
}

// joinFormers has former claims that questions can name be one of nobody.
func (a *address) joinFormers() {
	one := former{everywhere: true}
	rest := a.formers[:0]
	for _, f := range a.formers {
		if f.end == unnamed {
			rest = append(rest, f)
			continue
		}
		one.to, one.end = one.to.Union(f.to), max(one.end, f.end)
	}
	a.formers = append(rest, one)
}

// existing are those of some objects that are still there.
func (m *Machine) existing(all []world.Claimant) (out []world.Claimant) {
	for _, c := range all {
		if m.w.ClaimantOf(c.Object) == c {
			out = append(out, c)
		}
	}
	return out
}

// publishFormer tells the world of the former claims to an address, and forgets those that all nodes have followed. As
// long as two pods have the address, the claims of each are former ones for the other.
func (m *Machine) publishFormer(at world.PodAddr) {
	a := m.byAddr[at]
	if a.isForgettable() {
		if m.w.SetFormers(at, nil); len(a.formers) == 0 {
			delete(m.byAddr, at)
		}
		return
	}
	var list []world.Former
	a.formers = slices.DeleteFunc(a.formers, func(f former) bool {
		nodes := m.nodesBehind(f, m.waitFor(f, at, a))
		if len(nodes) > 0 {
			list = append(list, world.Former{By: f.by, To: f.to, Nodes: nodes})
		}
		return len(nodes) == 0 && f.end != unnamed
	})
	if len(a.pods) > 1 {
		list = append(list, m.rivalClaims(at, a)...)
	}
	list = append(list, m.unawareNodes(at, a)...)
	if len(a.pods)+len(a.formers) == 0 {
		delete(m.byAddr, at)
	}
	if !slices.EqualFunc(list, m.w.Formers(at), sameFormer) {
		m.w.SetFormers(at, list)
	}
}

func sameFormer(a, b world.Former) bool {
	return a.Begun == b.Begun && a.Shared == b.Shared && slices.Equal(a.By, b.By) && a.To.Equal(b.To) &&
		slices.Equal(a.Nodes, b.Nodes)
}

// waitFor says whether pods with an address may wait for nodes to follow a former claim.
func (m *Machine) waitFor(f former, at world.PodAddr, a *address) bool {
	if !f.unclaimed {
		return len(a.pods) > 0
	}
	for key := range a.pods {
		claims := m.pods[key].claims[world.FamilyOf(at.IP)]
		if slices.ContainsFunc(claims, func(c claim) bool { return !slices.Contains(f.by, c.by) }) {
			return true
		}
	}
	return false
}
