package zone

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// partKeptFor is how long a node keeps its subnets of a network after its last pod, and its last egress IP, there.
// After a deletion by force a pod may send for some seconds, until its kubelet follows. Another node's pod with its
// address would get the answers.
const partKeptFor = 10 * time.Minute

// parts remembers what decides which networks each node has a part of, beside its pods.
type parts struct {
	*members
	unnamed unnamed
	known   map[string]struct{}             // networks that nodes had a part of in this term
	left    map[string]map[string]time.Time // by node and network: since when a node with a part of it needs none
	again   time.Time                       // when the next part is released; zero: nothing is due
}

func newParts() *parts {
	return &parts{members: newMembers(), known: map[string]struct{}{}, left: map[string]map[string]time.Time{}}
}

// isDue says whether a part must be released.
func (p *parts) isDue(now time.Time) bool { return !p.again.IsZero() && !now.Before(p.again) }

// beginDecision forgets what the last decision found.
func (p *parts) beginDecision() {
	p.again = time.Time{}
	p.unnamed.beginDecision()
}

// releaseBy has parts released at a time. It reports whether that has not come yet.
func (p *parts) releaseBy(end, now time.Time) (later bool) {
	if !now.Before(end) {
		return false
	}
	if p.again.IsZero() || end.Before(p.again) {
		p.again = end
	}
	return true
}

// allocateParts gives a node subnets of each network that it needs a part of. It keeps what the Node says of a network
// that this leader has not known, unless the network is gone. The network may get its number later, or the writer is
// another plugin.
func (p *parts) allocateParts(w *world.View, t *taken, n, said *world.Node, now time.Time, a *Allocation) {
	names, further := p.networksOf(w, n.Name), map[string]world.NodeNetwork{}
	for name, part := range said.Further {
		if _, known := p.known[name]; w.Network(name) != nil || known {
			continue
		}
		if at, goes := p.unnamed.goneAt(w, name, now); !goes || p.releaseBy(at, now) {
			further[name] = part
		}
	}
	for _, name := range append(names, p.keptParts(n, names, now)...) {
		net := w.Network(name)
		if net == nil {
			continue
		}
		p.known[name] = struct{}{}
		if subnets := t.allocateSubnets(net, n, a); len(subnets) > 0 {
			further[name] = world.NodeNetwork{Subnets: subnets}
		}
	}
	if len(further) > 0 {
		a.Further = further
	}
}

// keptParts are the networks of which a node keeps its part for a while, though it needs none.
func (p *parts) keptParts(n *world.Node, used []string, now time.Time) (kept []string) {
	was, left := p.left[n.Name], map[string]time.Time{}
	for _, name := range slices.Sorted(maps.Keys(n.Further)) {
		if slices.Contains(used, name) {
			continue
		}
		since, is := was[name]
		if !is {
			since = now
		}
		if left[name] = since; p.releaseBy(since.Add(partKeptFor), now) {
			kept = append(kept, name)
		}
	}
	if p.left[n.Name] = left; len(left) == 0 {
		delete(p.left, n.Name)
	}
	return kept
}
