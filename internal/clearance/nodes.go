package clearance

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// node is another one that this node's pods are, were or may be led to.
type node struct {
	claims int       // of pods for which it is needed
	needed time.Time // when it last was
	uid    string
	older  bool // it says that it answers no questions
	// cleared: packets may be led there. It has answered, or need not; or a former process, or one while the node did
	// not answer questions, led packets there.
	cleared bool
	heard   moment    // that its last answer is about
	due     moment    // that it must be heard of
	urgent  bool      // packets wait for that
	awaited bool      // it drops packets until then
	since   time.Time // when due last became more than heard
	asking  uint64    // the number of the question under way; 0: none is
	asked   time.Time // since when it is asked in vain; zero: it is not
	next    time.Time // when it is asked again
	last    time.Time // when it was asked last
	pause   time.Duration
	again   bool // it has answered late, and is to say the same once more
	// parts is, by a network's number, the moment that the node must have followed to know that it has a part of it.
	parts map[int]moment
}

// nodesBehind says which nodes have not followed the end of a claim, of those that packets may be led to by now or by
// their next answer; waits: a pod has the address.
func (m *Machine) nodesBehind(f former, waits bool) (names []string) {
	for name, n := range m.nodes {
		asked := n.cleared || n.asking != 0 || n.claims > 0
		if !n.older && asked && n.heard < f.end && (f.everywhere || slices.Contains(f.at, name)) {
			if names = append(names, name); f.end == unnamed || f.unclaimed && !waits {
				continue
			}
			n.due = max(n.due, f.end)
			n.urgent = n.urgent || waits && n.claims > 0
		}
	}
	slices.Sort(names)
	return names
}

// takeAnswer takes in a node's answer.
func (m *Machine) takeAnswer(a Answer) {
	n := m.nodes[a.Node]
	if n == nil || n.asking != a.Number {
		return
	}
	n.asking = 0
	if a.Err != nil {
		n.pause = min(max(2*n.pause, firstPause), lastPause)
		n.next = m.now.Add(n.pause)
		return
	}
	if late := !n.asked.IsZero() && m.now.Sub(n.asked) >= lateAfter; late && !n.again {
		n.again, n.next = true, m.now.Add(settles)
		return
	}
	n.again = false
	n.heard, n.cleared, m.moved = max(n.heard, a.As), true, true
	n.asked, n.pause, n.urgent, n.awaited = time.Time{}, 0, false, false
}

// followNode takes in what a node says of itself. One that does not say that it answers questions is of a version that
// does not, and need not; one that comes to say so may be led to as before. One that says nothing may be of any
// version: the report of a node that holds nothing reaches no other node.
func (m *Machine) followNode(name string, n *node) {
	is := m.w.Node(name)
	if n.needed.IsZero() || n.claims > 0 {
		n.needed = m.now
	}
	if is == nil || n.uid != "" && n.uid != is.UID {
		m.moved = true
		if *n = (node{claims: n.claims, needed: n.needed}); is == nil {
			return
		}
	}
	n.uid = is.UID
	m.followParts(n, is)
	if said := m.w.Holding(name); said != nil && said.BootID != "" {
		m.followReport(n, said.AnswersAt() == 0)
	}
	if n.claims == 0 && n.cleared && n.heard < n.due && m.now.Sub(n.needed) > keptFor {
		*n, m.moved = node{needed: n.needed, uid: n.uid, older: n.older}, true
	}
}

// followParts notes since when a node has had its parts of networks. The first question to a node names all parts that
// it has by then.
func (m *Machine) followParts(n *node, is *world.Node) {
	parts, isAsked := map[int]moment{}, n.heard != never || n.asking != 0
	for name := range is.Further {
		network := m.w.Network(name)
		if network == nil {
			continue
		}
		at, had := n.parts[network.ID]
		switch {
		case had:
		case isAsked:
			at, m.ended, m.moved = m.ends+1, true, true
		default:
			at = beforeStart
		}
		parts[network.ID] = at
	}
	n.parts = parts
}

func (m *Machine) followReport(n *node, older bool) {
	if older != n.older {
		n.older, m.moved = older, true
	}
	if older && !n.cleared {
		n.cleared, m.moved = true, true
	}
}

// decideNode says what is known of a node, and asks it.
func (m *Machine) decideNode(name string, n *node) {
	if !n.older && n.heard == never && n.claims > 0 {
		n.due, n.urgent = max(n.due, beforeStart), true
	}
	open := !n.older && n.heard < n.due
	switch {
	case !open:
		n.since, n.urgent, n.awaited, n.asked = time.Time{}, false, false, time.Time{}
	case n.since.IsZero():
		n.since = m.now
	}
	m.askNode(name, n, open)
	since := n.asked
	if since.IsZero() && n.claims > 0 && !m.w.Alive(name) {
		since = n.since // it cannot even be asked
	}
	tells := (n.urgent || n.awaited) && !since.IsZero()
	late := tells && m.now.Sub(since) >= lateAfter
	if tells && !late {
		m.wakeBy(since.Add(lateAfter))
	}
	c := world.Clearance{Cleared: n.cleared, Late: late}
	m.w.SetClearance(name, c)
	if n.claims == 0 && m.w.Node(name) == nil {
		delete(m.nodes, name)
	}
}

// askNode asks a node when it is time to. One that is not alive, or whose report does not reach this one, cannot be
// asked; when it can, a step is made.
func (m *Machine) askNode(name string, n *node, open bool) {
	if !open || n.asking != 0 || !m.w.Alive(name) || m.w.Holding(name).AnswersAt() == 0 {
		return
	}
	at := n.next
	if !n.urgent && at.Before(n.last.Add(gather)) {
		at = n.last.Add(gather)
	}
	if m.now.Before(at) {
		m.wakeBy(at)
		return
	}
	m.asked++
	if n.asking, n.last = m.asked, m.now; n.asked.IsZero() {
		n.asked = m.now
	}
	m.out.Ask = append(m.out.Ask, Question{name, m.ends, m.asked})
}

func (m *Machine) wakeBy(at time.Time) {
	if m.out.Wake.IsZero() || at.Before(m.out.Wake) {
		m.out.Wake = at
	}
}

func sortedKeys[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }
