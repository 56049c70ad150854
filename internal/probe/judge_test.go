package probe_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// story is nodes that answer or do not, in a time that only the test makes pass.
type story struct {
	judge probe.Judge
	now   time.Duration
	signs map[string]probe.Signs
	mute  map[string]string // "host": nothing answers; "agent": only the kernel does; "tunnel": only the host, directly
	// witness says that there is one that answers; witnessed, when it did last.
	witness   bool
	witnessed time.Duration
	said      []string // "2.5 n1 NodeUnreachable"
	known     []string // the same: false is not answering
	why       map[string]world.Unreachability
	tells     map[string]bool
}

const step = 25 * time.Millisecond

func newStory(agents bool, nodes ...string) *story {
	s := &story{signs: map[string]probe.Signs{}, mute: map[string]string{}, why: map[string]world.Unreachability{},
		tells: map[string]bool{}}
	s.judge = probe.Judge{Total: time.Second, Grace: 30 * time.Second, Agents: agents, Self: "self"}
	for _, n := range nodes {
		s.signs[n] = probe.Signs{}
	}
	return s
}

// pass lets time pass; nodes answer four times a second, each at its own moment.
func (s *story) pass(d time.Duration) *story {
	for end := s.now + d; s.now < end; {
		s.now += step
		for i, n := range slices.Sorted(maps.Keys(s.signs)) {
			if s.now/step%10 == time.Duration(i) {
				s.answer(n)
			}
		}
		if s.witness && s.now/step%10 == 9 {
			s.witnessed = s.now
		}
		s.look()
	}
	return s
}

func (s *story) answer(node string) {
	g := s.signs[node]
	switch s.mute[node] {
	case "":
		g = probe.Signs{Host: s.now, Agent: s.now}
	case "agent":
		g.Host = s.now
	case "tunnel":
		g.Direct = s.now
	}
	s.signs[node] = g
}

func (s *story) look() {
	for _, c := range s.judge.Look(s.now, s.signs, s.witnessed) {
		if c.Why != s.why[c.Node] {
			s.said = append(s.said, fmt.Sprintf("%.0f %s %s", s.now.Seconds(), c.Node, c.Why))
		}
		if c.NotAnswering == s.tells[c.Node] {
			s.known = append(s.known, fmt.Sprintf("%.0f %s %t", s.now.Seconds(), c.Node, !c.NotAnswering))
		}
		s.why[c.Node], s.tells[c.Node] = c.Why, !c.NotAnswering
	}
}

func (s *story) expect(t *testing.T, want ...string) {
	t.Helper()
	if have := strings.Join(s.said, ", "); have != strings.Join(want, ", ") {
		t.Errorf("after %v: have %q, want %q", s.now, have, want)
	}
}

// TestSilenceIsDeath: within the total timeout of the last possible answer, and not before a whole timeout of silence.
func TestSilenceIsDeath(t *testing.T) {
	s := newStory(false, "n1", "n2", "n3", "self")
	s.pass(10 * time.Second).expect(t)
	s.mute["n1"] = "host"
	s.pass(740 * time.Millisecond).expect(t)
	s.pass(260*time.Millisecond).expect(t, "11 n1 NodeUnreachable")
	s.pass(time.Minute).expect(t, "11 n1 NodeUnreachable")
	s.mute["n1"] = ""
	s.pass(300*time.Millisecond).expect(t, "11 n1 NodeUnreachable", "71 n1 ")
}

// TestAgentAway: a restart of an agent is nobody's business, a long absence is.
func TestAgentAway(t *testing.T) {
	s := newStory(true, "n1", "n2")
	s.pass(10 * time.Second)
	s.mute["n1"] = "agent"
	s.pass(29 * time.Second)
	s.mute["n1"] = ""
	s.pass(10 * time.Second).expect(t)
	s.mute["n1"] = "agent"
	s.pass(time.Minute).expect(t, "79 n1 AgentAway")
	s.mute["n1"] = ""
	s.pass(time.Second).expect(t, "79 n1 AgentAway", "109 n1 ")
}

// TestAgentNeverAnswered: it may not have been restarted with the setting that has it answer.
func TestAgentNeverAnswered(t *testing.T) {
	s := newStory(true, "n1", "n2")
	s.mute["n1"] = "agent"
	s.pass(149 * time.Second).expect(t)
	s.pass(10*time.Second).expect(t, "150 n1 AgentAway")
}

// TestAgentsAreNotAsked: with TCP port 9 nothing is known of them.
func TestAgentsAreNotAsked(t *testing.T) {
	s := newStory(false, "n1", "n2")
	s.mute["n1"], s.mute["n2"] = "agent", "agent"
	s.pass(time.Hour / 10).expect(t)
}

// TestPowerCycle: a host that answers again does not host anything before its agent is there, however short it was
// away.
func TestPowerCycle(t *testing.T) {
	s := newStory(true, "n1", "n2")
	s.pass(10 * time.Second)
	s.mute["n1"] = "host"
	s.pass(5 * time.Second)
	s.mute["n1"] = "agent"
	s.pass(5*time.Second).expect(t, "11 n1 NodeUnreachable", "15 n1 AgentAway")
	s.mute["n1"] = "host"
	s.pass(5*time.Second).expect(t, "11 n1 NodeUnreachable", "15 n1 AgentAway", "21 n1 NodeUnreachable")
	s.mute["n1"] = ""
	s.pass(5*time.Second).expect(t, "11 n1 NodeUnreachable", "15 n1 AgentAway", "21 n1 NodeUnreachable", "25 n1 ")
}

// TestNeverAnswered: a node that never answered is dead, but later than one that has.
func TestNeverAnswered(t *testing.T) {
	s := newStory(true, "n1", "n2")
	s.mute["n1"] = "host"
	s.pass(4 * time.Second).expect(t)
	s.pass(4*time.Second).expect(t, "5 n1 NodeUnreachable")
}

// TestLateWays: on a host that has just booted the tunnels to others come up one by one, in seconds on a busy machine;
// nobody is dead for it. From then on the timeout is what it always is.
func TestLateWays(t *testing.T) {
	s := newStory(false, "n1", "n2", "n3")
	s.mute["n1"], s.mute["n2"], s.mute["n3"] = "host", "host", "host"
	for _, n := range []string{"n3", "n2", "n1"} {
		s.pass(1400 * time.Millisecond)
		delete(s.mute, n)
	}
	s.pass(10 * time.Second).expect(t)
	s.mute["n1"] = "host"
	s.pass(2*time.Second).expect(t, "15 n1 NodeUnreachable")
}

// TestCutOff: whom nobody answers is cut off itself, and moves nothing; its own addresses are no proof of the contrary.
func TestCutOff(t *testing.T) {
	for _, nodes := range [][]string{{"n1"}, {"n1", "self"},
		{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "self"}} {
		s := newStory(false, nodes...)
		s.pass(10 * time.Second)
		for _, n := range nodes {
			if n != "self" {
				s.mute[n] = "host"
			}
		}
		s.pass(time.Hour / 10).expect(t)
		if !s.judge.CutOff() {
			t.Errorf("%v: not cut off", nodes)
		}
		clear(s.mute)
		s.pass(time.Minute).expect(t)
		if s.judge.CutOff() {
			t.Errorf("%v: still cut off", nodes)
		}
	}
}

// TestCutOffKeepsVerdicts: the dead stay dead, and once another answers, who stays silent is dead too.
func TestCutOffKeepsVerdicts(t *testing.T) {
	s := newStory(false, "n1", "n2", "n3")
	s.pass(10 * time.Second)
	s.mute["n1"] = "host"
	s.pass(5 * time.Second)
	s.mute["n2"], s.mute["n3"] = "host", "host"
	s.pass(time.Minute).expect(t, "11 n1 NodeUnreachable")
	delete(s.mute, "n3")
	s.pass(time.Second).expect(t, "11 n1 NodeUnreachable", "76 n2 NodeUnreachable")
}

// TestNotAnswering: a node that has not answered yet, or is silent while nobody can tell who is dead, is not answering,
// and no longer than that; one that is dead is for five seconds more.
func TestNotAnswering(t *testing.T) {
	s := newStory(false, "n1", "n2", "self")
	s.mute["n2"] = "host"
	s.pass(2 * time.Second)
	if have, want := strings.Join(slices.Sorted(slices.Values(s.known)), ", "), "0 n1 true, 0 self true"; have != want {
		t.Errorf("n2 has not begun: have %q, want %q", have, want)
	}
	delete(s.mute, "n2")
	s.pass(8 * time.Second)
	s.known = nil
	s.mute["n1"] = "host"
	s.pass(4*time.Second).expect(t, "11 n1 NodeUnreachable")
	s.mute["n2"] = "host" // nobody else answers now
	s.pass(4*time.Second).expect(t, "11 n1 NodeUnreachable")
	if have, want := strings.Join(s.known, ", "), "11 n1 false, 15 n2 false, 16 n1 true"; have != want {
		t.Errorf("all are silent: have %q, want %q", have, want)
	}
	delete(s.signs, "n2")
	clear(s.mute)
	s.pass(4 * time.Second)
	if have, want := strings.Join(s.known, ", "), "11 n1 false, 15 n2 false, 16 n1 true, 18 n2 true"; have != want {
		t.Errorf("n2 is probed no more: have %q, want %q", have, want)
	}
}

// TestFlapping: a node that comes and goes is in doubt for five seconds, not at each loss, until it has answered for
// ten.
func TestFlapping(t *testing.T) {
	s := newStory(false, "n1", "n2")
	for _, answers := range []time.Duration{1, 1, 9, 1, 12, 1} {
		s.pass(answers * time.Second)
		s.mute["n1"] = "host"
		s.pass(4 * time.Second)
		delete(s.mute, "n1")
	}
	s.known = slices.DeleteFunc(s.known, func(k string) bool { return strings.HasSuffix(k, "true") })
	if have, want := strings.Join(s.known, ", "), "2 n1 false, 41 n1 false"; have != want {
		t.Errorf("in doubt: have %q, want %q", have, want)
	}
}

// TestStall: after this process has stood still, the answers that wait to be read come first.
func TestStall(t *testing.T) {
	s := newStory(false, "n1", "n2", "n3")
	s.pass(10 * time.Second)
	s.now += 3 * time.Second
	s.answer("n1")
	s.look()
	s.pass(time.Minute).expect(t)
}

// TestForgotten: a node that is probed no longer does not stay unreachable.
func TestForgotten(t *testing.T) {
	s := newStory(false, "n1", "n2", "n3")
	s.mute["n1"] = "host"
	s.pass(10 * time.Second)
	delete(s.signs, "n1")
	s.pass(time.Second).expect(t, "5 n1 NodeUnreachable", "10 n1 ")
}

// TestProbedAnew: of a node whose probing begins anew nothing is known, even where it answers before the next look, and
// what it does is told. Nobody was told what it did before.
func TestProbedAnew(t *testing.T) {
	anew := func(name string, s *story, answers bool, want probe.Change) {
		t.Helper()
		s.now += step
		s.signs["n1"] = probe.Signs{Host: s.now - 2, Agent: s.now - 2, Since: s.now - 2}
		if answers {
			s.signs["n1"] = probe.Signs{Host: s.now, Agent: s.now, Since: s.now - 2}
		}
		if have := s.judge.Look(s.now, s.signs, 0); len(have) != 1 || have[0] != want {
			t.Errorf("%s: have %+v, want %+v", name, have, want)
		}
		if s.now += step; len(s.judge.Look(s.now, s.signs, 0)) > 0 {
			t.Errorf("%s: told twice", name)
		}
	}
	well := newStory(true, "n1", "n2").pass(10 * time.Second)
	anew("it answers at once", well, true, probe.Change{Node: "n1"})
	anew("it does not", well, false, probe.Change{Node: "n1", NotAnswering: true, Silent: 2})
	anew("it answered nowhere", well, false, probe.Change{Node: "n1", NotAnswering: true, Silent: 2})
	dead := newStory(true, "n1", "n2").pass(10 * time.Second)
	dead.mute["n1"] = "host"
	dead.pass(10*time.Second).expect(t, "11 n1 NodeUnreachable")
	anew("it was dead", dead, true, probe.Change{Node: "n1"})
}

// TestUnreachabilityIsWorlds: what is told are the reasons that the world knows.
func TestUnreachabilityIsWorlds(t *testing.T) {
	j := probe.Judge{Total: time.Second, Grace: time.Minute}
	signs := map[string]probe.Signs{"n1": {}, "n2": {}}
	for now := time.Duration(0); now < 6*time.Second; now += 100 * time.Millisecond {
		signs["n2"] = probe.Signs{Host: now}
		for _, c := range j.Look(now, signs, 0) {
			if c.Why == "" && (now == 0 || c.Node == "n2" && !c.NotAnswering) {
				continue // nothing has answered yet, or it has
			}
			if c.Why != world.NodeUnreachable || c.Node != "n1" || c.Silent < time.Second {
				t.Errorf("%+v", c)
			}
		}
	}
	if s := j.Silent(); !s["n1"] || s["n2"] {
		t.Errorf("silent: %v", s)
	}
}

// TestTwoNodes: of two nodes the other one is dead when witnesses answer all the while, as soon as one of many is.
// Without them nobody can tell.
func TestTwoNodes(t *testing.T) {
	s := newStory(false, "n1", "self")
	s.pass(10 * time.Second)
	s.mute["n1"] = "host"
	s.pass(time.Minute).expect(t)
	if !s.judge.CutOff() {
		t.Error("nobody answers, and it is not this host that is cut off")
	}
	s.mute["n1"] = ""
	s.witness = true
	s.pass(10 * time.Second).expect(t)
	s.mute["n1"] = "host"
	s.pass(740 * time.Millisecond).expect(t)
	s.pass(310*time.Millisecond).expect(t, "81 n1 NodeUnreachable")
	if s.judge.CutOff() {
		t.Error("a witness answers, and this host is cut off")
	}
	s.pass(time.Minute).expect(t, "81 n1 NodeUnreachable")
	s.mute["n1"] = ""
	s.pass(time.Second).expect(t, "81 n1 NodeUnreachable", "141 n1 ")
}

// TestBackFromBeingCutOff: witnesses that answer first when a link is whole again say nothing of nodes that answer a
// moment later; nor does one that answered last just before the link broke.
func TestBackFromBeingCutOff(t *testing.T) {
	for late := step; late < time.Second; late += step {
		s := newStory(false, "n1", "self")
		s.witness = true
		s.pass(10*time.Second + late)
		s.mute["n1"], s.witness = "host", false
		s.pass(10 * time.Second)
		s.witness = true
		s.pass(late)
		s.mute["n1"] = ""
		s.pass(5 * time.Second).expect(t)
	}
}

// TestBrokenTunnels: a node that answers at its own address is not dead, whatever witnesses say: addresses would move
// to a node that nobody's packets reach.
func TestBrokenTunnels(t *testing.T) {
	s := newStory(false, "n1", "n2", "self")
	s.witness = true
	s.pass(10 * time.Second)
	s.mute["n1"], s.mute["n2"] = "tunnel", "host"
	s.pass(time.Minute).expect(t)
	if !s.judge.CutOff() {
		t.Error("its tunnels are broken, and it would lead")
	}
	s.mute["n1"] = "host"
	s.pass(2 * time.Second)
	slices.Sort(s.said)
	s.expect(t, "71 n1 NodeUnreachable", "71 n2 NodeUnreachable")
}
