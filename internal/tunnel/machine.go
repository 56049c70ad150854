package tunnel

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// settled is how long a session must be up after it was down before the node counts again. Each change moves
// connections, and a link that comes and goes would move them again and again.
const settled = time.Second

// Session is the BFD session with one node, as OVS reports it.
type Session struct {
	Node  string
	Up    bool
	WasUp bool // it is up, or was before; a start of ovs-vswitchd clears it
}

// tunnelState: a session that never came up may have no other end, for that node's agent is of a version without. So it
// is when our own ovs-vswitchd has been restarted: all sessions are down then, and nothing is wrong with the others.
func (s Session) tunnelState() world.Tunnel {
	switch {
	case s.Up:
		return world.TunnelUp
	case s.WasUp:
		return world.TunnelDown
	}
	return world.TunnelUnknown
}

// Change is a node's new state.
type Change struct {
	Node    string
	Was, Is world.Tunnel
}

// Result is what holds after a step.
type Result struct {
	Changes []Change  // since the last step
	Alone   bool      // no other node answers, and one did
	Silent  int       // how many sessions are down
	Wake    time.Time // ask again then; zero if time alone changes nothing
}

// Machine is one node's: another node is down as soon as it is silent, and up again when it has answered for a while.
// While this host is cut off, or stood still, silence says nothing of any other node (cutOff). The zero value knows of
// no node.
type Machine struct {
	nodes  map[string]*node
	cutOff cutOff
	alone  bool

	// Of the step under way.
	now time.Time
	out Result
}

// node is another one, to which there is a session.
type node struct {
	told   world.Tunnel
	silent time.Time // since then; zero while it is not down
	counts time.Time // when it is up again for the world; zero unless it was down and answers
}

// Step takes in the sessions, which may be those of the last step, and says what changes.
func (m *Machine) Step(sessions []Session, now time.Time) Result {
	m.now, m.out = now, Result{Silent: countInState(sessions, world.TunnelDown)}
	for _, s := range sessions {
		m.noteSilence(s)
	}
	up := countInState(sessions, world.TunnelUp)
	m.cutOff.followSessions(m.nodes, up, m.out.Silent, now)
	m.judgeAll(sessions)
	m.forgetGone(sessions)
	if m.cutOff.hasEnded(now) {
		m.judgeAll(sessions)
	}
	m.reportRecovered()
	m.alone = up == 0 && (m.out.Silent > 0 || m.alone)
	m.out.Alone, m.out.Wake = m.alone, m.nextWake()
	return m.out
}

func countInState(sessions []Session, state world.Tunnel) int {
	n := 0
	for _, s := range sessions {
		if s.tunnelState() == state {
			n++
		}
	}
	return n
}

// noteSilence keeps since when a node is silent.
func (m *Machine) noteSilence(s Session) {
	n := m.nodes[s.Node]
	if n == nil {
		if m.nodes == nil {
			m.nodes = map[string]*node{}
		}
		n = &node{}
		m.nodes[s.Node] = n
	}
	switch {
	case s.tunnelState() != world.TunnelDown:
		n.silent = time.Time{}
	case n.silent.IsZero():
		n.silent = m.now
	}
}

func (m *Machine) judgeAll(sessions []Session) {
	for _, s := range sessions {
		m.judgeNode(s.Node, s.tunnelState())
	}
}

// judgeNode says what a session's state makes of the node.
func (m *Machine) judgeNode(name string, state world.Tunnel) {
	n := m.nodes[name]
	if !n.counts.IsZero() && state == world.TunnelUp {
		return // it waits
	}
	n.counts = time.Time{}
	switch {
	case state == n.told, state == world.TunnelDown && m.cutOff.is:
	case state == world.TunnelUp && n.told == world.TunnelDown:
		n.counts = m.now.Add(settled)
	default:
		m.reportChange(name, state)
	}
}

// forgetGone drops nodes without a session.
func (m *Machine) forgetGone(sessions []Session) {
	has := map[string]bool{}
	for _, s := range sessions {
		has[s.Node] = true
	}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		if !has[name] {
			m.judgeNode(name, world.TunnelUnknown)
			delete(m.nodes, name)
		}
	}
}

// reportRecovered tells of nodes that have answered for long enough.
func (m *Machine) reportRecovered() {
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		if n := m.nodes[name]; !n.counts.IsZero() && !m.now.Before(n.counts) {
			n.counts = time.Time{}
			m.reportChange(name, world.TunnelUp)
		}
	}
}

func (m *Machine) reportChange(name string, is world.Tunnel) {
	n := m.nodes[name]
	m.out.Changes = append(m.out.Changes, Change{Node: name, Was: n.told, Is: is})
	n.told = is
}

// nextWake is when something follows from time alone.
func (m *Machine) nextWake() time.Time {
	wake := m.cutOff.ends
	for _, n := range m.nodes {
		if !n.counts.IsZero() && (wake.IsZero() || n.counts.Before(wake)) {
			wake = n.counts
		}
	}
	return wake
}
