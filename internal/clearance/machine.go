package clearance

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

const (
	// gather is how long after a question to a node ends of claims are gathered for the next one, where no packet waits
	// for that.
	gather = 200 * time.Millisecond
	// lateAfter is how long packets may wait for a node's answer before that is a problem to report.
	lateAfter = time.Second
	// firstPause and lastPause are those between two questions to a node that does not answer.
	firstPause, lastPause = 50 * time.Millisecond, time.Second
	// settles is how long what a node has followed late takes to hold for each packet: the datapath drops its cached
	// flows one by one. Packets that waited no longer than lateAfter are within what every change takes.
	settles = time.Second
	// keptFor is how long a node is asked on after the last pod for which it could be needed.
	keptFor = 5 * time.Minute
)

// Facts are what the machine is told.
type Facts struct {
	Answers []Answer
	// PastLists: a question names a version of pods that is newer than the first list of them, and so than the end of
	// each pod that is not in it.
	PastLists bool
}

// Answer is a node's to a question: that it has followed, or an error.
type Answer struct {
	Question
	Err error
}

// Question asks a node whether it has followed what this one has seen. As is the machine's moment when it asked. Number
// tells a question from an earlier one to a node of the same name.
type Question struct {
	Node   string
	As     moment
	Number uint64
}

// moment counts the steps in which claims ended or began.
type moment uint64

const (
	never       moment = 0 // no answer, no claim
	beforeStart moment = 1 // all that a former process has seen
	// unnamed is the moment of something that no question can name yet.
	unnamed moment = math.MaxUint64
)

// Former is what a former process of this agent led its pods to: it goes on though nodes do not answer.
type Former struct {
	Nodes [2]map[ref.Object][]string // by family
	Pods  map[world.PodAddr][]ref.Object
	// To is where packets went by an object that did not have all destinations. One pod has several objects only where
	// each of them has its own.
	To map[ref.Object]destinations.Set
}

// Result is the outcome of a step.
type Result struct {
	Ask  []Question // by node
	Wake time.Time  // ask again then; zero if time alone changes nothing
}

// Machine is one node's. The zero value knows nothing; Begin makes it work.
type Machine struct {
	readers world.Readers[string]
	stale   map[string]struct{} // pods of which something that was read has changed
	pods    map[string]*pod     // this node's, by key
	byAddr  map[world.PodAddr]*address
	nodes   map[string]*node
	former  *Former // in the first step alone
	ends    moment
	asked   uint64 // questions
	moved   bool   // the knowledge about nodes has changed
	self    self
	// fresh is, by a network's number, the moment that a node must have followed before packets of a new address are
	// steered there. Another pod may have had it, which was deleted before this process saw any, or was on another
	// node, or in another network that had the number.
	fresh map[int]moment
	// selected is the moment that a node must have followed to know what objects select, and altered to know all that
	// decides which of them have claims.
	selected, altered map[selection]moment
	latest            map[world.Kind]moment // of the last change of pods, or that selected or altered notes
	// endpoints are when those of Services last changed; forgotEndpoints is when earlier moments were forgotten.
	endpoints       map[string]moment
	forgotEndpoints moment
	// limited are former EgressIPs with a trafficSelector; forgotLimited is when earlier ones were forgotten.
	limited       []limitedBefore
	forgotLimited moment
	// selectors are former ones of Services; forgotSelectors is when earlier ones were forgotten.
	selectors       []selectorBefore
	forgotSelectors moment
	// forgets is with how many addresses former states are forgotten next.
	forgets int
	known   map[world.Entry]known
	changed []world.Entry // in the world, since the last step

	// Of the step under way.
	w     *world.World
	now   time.Time
	out   Result
	ended bool // claims have
	turns []turn
}

// Begin makes the machine work, once the cluster is known.
func (m *Machine) Begin(w *world.World, f Former) {
	w.FollowChanges(func(e world.Entry) { m.changed = append(m.changed, e) })
	m.stale = map[string]struct{}{}
	m.readers = world.NewReaders(m.stale)
	m.pods, m.byAddr = map[string]*pod{}, map[world.PodAddr]*address{}
	m.nodes, m.former, m.ends, m.fresh = map[string]*node{}, &f, beforeStart, map[int]moment{0: unnamed}
	m.selected, m.altered = map[selection]moment{}, map[selection]moment{}
	m.endpoints = map[string]moment{}
	m.latest, m.known = map[world.Kind]moment{}, map[world.Entry]known{}
	for _, byObject := range f.Nodes {
		for _, nodes := range byObject {
			for _, name := range nodes {
				m.nodes[name] = &node{cleared: true, due: beforeStart}
			}
		}
	}
	w.BeginClearing()
}

// Step takes in what is new, and changes the world.
func (m *Machine) Step(w *world.World, f Facts, now time.Time) Result {
	if !w.Clearing() {
		return Result{}
	}
	m.w, m.now, m.out = w, now, Result{}
	for _, a := range f.Answers {
		m.takeAnswer(a)
	}
	m.followSelf(f.PastLists)
	m.followNodes()
	m.followPods()
	m.followNodes() // with those that came to be needed
	if m.moved {
		for at, a := range m.byAddr {
			if !a.isForgettable() {
				m.publishFormer(at)
			}
		}
		m.moved = false
	}
	for _, name := range sortedKeys(m.nodes) {
		m.decideNode(name, m.nodes[name])
	}
	return m.out
}

// self is what decides whose addresses this node's pods get: its subnets are by their network's number.
type self struct {
	uid     string
	subnets map[int][]netip.Prefix
}

// readSelf returns what is known of this node. It has a part, which may be empty, of the default network.
func (m *Machine) readSelf() self {
	n := m.w.Node(m.w.Self)
	if n == nil {
		n = &world.Node{}
	}
	is := self{n.UID, map[int][]netip.Prefix{0: n.Subnets}}
	for name, part := range n.Further {
		if network := m.w.Network(name); network != nil {
			is.subnets[network.ID] = part.Subnets
		}
	}
	return is
}

// followSelf has nodes be heard of again before packets of addresses that come are led there, once a question names the
// ends of all pods that may have had them. A network whose subnets change does so for its own addresses alone.
func (m *Machine) followSelf(pastLists bool) {
	is := m.readSelf()
	maps.DeleteFunc(m.fresh, func(network int, _ moment) bool {
		_, has := is.subnets[network]
		return !has
	})
	for network, subnets := range is.subnets {
		at, had := m.fresh[network]
		if !had || is.uid != m.self.uid || !slices.Equal(subnets, m.self.subnets[network]) {
			at = unnamed
		}
		if at == unnamed && pastLists {
			at, m.ended, m.moved = m.ends+1, true, true
			m.nameFresh(network, at)
		}
		m.fresh[network] = at
	}
	m.self = is
}

// nameFresh names the moment that nodes must have followed before packets of a network's new addresses are led there.
func (m *Machine) nameFresh(network int, fresh moment) {
	for at, a := range m.byAddr {
		for i, f := range a.formers {
			if at.Network == network && f.end == unnamed {
				a.formers[i].end = fresh
			}
		}
	}
}

// freshFor is what fresh has for a network. This node has no part of one that it does not have.
func (m *Machine) freshFor(network int) moment {
	if at, has := m.fresh[network]; has {
		return at
	}
	return unnamed
}

func (m *Machine) followNodes() {
	for name, n := range m.nodes {
		m.followNode(name, n)
	}
}

// followPods takes in which claims this node's pods have.
func (m *Machine) followPods() {
	keys := maps.Clone(m.stale)
	clear(m.stale)
	if m.former != nil {
		for _, key := range m.w.Keys(world.KindPod) {
			keys[key] = struct{}{}
		}
	}
	m.followSpecs()
	for _, t := range m.changed {
		if t.Kind == world.KindPod {
			keys[t.Key] = struct{}{}
		}
	}
	m.changed = m.changed[:0]
	changed := map[world.PodAddr]struct{}{}
	for _, key := range sortedKeys(keys) {
		m.followPod(key, changed)
	}
	m.noteTurns(changed)
	m.forgetFormerStates(changed)
	if m.former = nil; m.ended {
		m.ends++
	}
	m.ended = false
	for at := range changed {
		m.publishFormer(at)
	}
}
