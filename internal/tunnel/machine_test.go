package tunnel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/tunnel"
)

// story is a machine in a time that only the test makes pass.
type story struct {
	machine  tunnel.Machine
	now      time.Duration
	sessions []tunnel.Session
	wake     time.Duration // when the machine wants to be asked again, 0 if it does not
	alone    bool
	said     []string
}

var begin = time.Unix(100, 0)

// step is one step of the machine with what was reported last.
func (s *story) step() {
	r := s.machine.Step(s.sessions, begin.Add(s.now))
	for _, c := range r.Changes {
		s.said = append(s.said, fmt.Sprint(c.Node, " ", c.Is))
	}
	if r.Alone != s.alone {
		s.said = append(s.said, map[bool]string{true: "alone", false: "not alone"}[r.Alone])
	}
	if s.alone, s.wake = r.Alone, 0; !r.Wake.IsZero() {
		s.wake = r.Wake.Sub(begin)
	}
}

// report brings the state of all sessions; after it, what the machine says of that.
func (s *story) report(sessions ...tunnel.Session) string {
	s.said, s.sessions = nil, sessions
	s.step()
	return strings.Join(s.said, ", ")
}

// answers brings the names of the nodes of n2, n3 and n4 whose sessions are up; those of all others are down.
func (s *story) answers(up ...string) string {
	var all []tunnel.Session
	for _, n := range []string{"n2", "n3", "n4"} {
		all = append(all, tunnel.Session{Node: n, Up: slices.Contains(up, n), WasUp: true})
	}
	return s.report(all...)
}

// pass lets time pass, and asks the machine when it wants to be asked.
func (s *story) pass(d time.Duration) string {
	s.said = nil
	for end := s.now + d; s.now < end; {
		if s.now = end; s.wake > 0 && s.wake <= end {
			s.now = s.wake
			s.step()
		}
	}
	return strings.Join(s.said, ", ")
}

func (s *story) expect(t *testing.T, what, have, want string) {
	t.Helper()
	if have != want {
		t.Errorf("after %v, %s: told %q, want %q", s.now, what, have, want)
	}
}

// TestCutOff: a host that stood still gets answers of nobody for a moment, and then of one after the other. None of
// them is down, but who does not answer again in time.
func TestCutOff(t *testing.T) {
	s := &story{}
	s.answers("n2", "n3", "n4")
	s.expect(t, "all are silent", s.answers(), "alone")
	s.expect(t, "one answers", s.answers("n3"), "not alone")
	s.pass(400 * time.Millisecond)
	s.expect(t, "all are silent again", s.answers(), "alone")
	s.pass(400 * time.Millisecond)
	s.expect(t, "one answers again", s.answers("n3"), "not alone")
	s.expect(t, "another one", s.answers("n2", "n3"), "")
	s.expect(t, "what was to end the first wait", s.pass(1199*time.Millisecond), "")
	s.expect(t, "the wait is over", s.pass(time.Millisecond), "n4 down")
	s.expect(t, "no longer cut off, and one is silent", s.answers("n2"), "n3 down")
}

// TestCutOffOfTwoOnly: a node's only other one that falls silent is down, and so is who is left when the others are
// gone.
func TestCutOffOfTwoOnly(t *testing.T) {
	s := &story{}
	up, down := tunnel.Session{Node: "n2", Up: true, WasUp: true}, tunnel.Session{Node: "n2", WasUp: true}
	s.report(up)
	s.expect(t, "the only one is silent", s.report(down), "n2 down, alone")
}

// TestSilentOneAfterTheOther: who falls silent when others have been so for a while is down as they are.
func TestSilentOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		later time.Duration
		want  string
	}{{500 * time.Millisecond, "n2 down, alone"}, {499 * time.Millisecond, "alone"}} {
		s := &story{}
		s.answers("n2", "n3", "n4")
		s.expect(t, "two are silent", s.answers("n2"), "n3 down, n4 down")
		s.pass(c.later)
		s.expect(t, "the third, later", s.answers(), c.want)
	}
}

// TestStates: down counts at once, and up after a down only when it has lasted; what was never up says nothing.
func TestStates(t *testing.T) {
	up, down := tunnel.Session{Node: "n2", Up: true, WasUp: true}, tunnel.Session{Node: "n2", WasUp: true}
	never, other := tunnel.Session{Node: "n2"}, tunnel.Session{Node: "n3", Up: true}
	const short, moment = 999 * time.Millisecond, time.Millisecond
	s := &story{}
	for _, c := range []struct {
		what     string
		sessions []tunnel.Session
		pass     time.Duration
		want     string // at once, and after pass
		wake     bool
	}{
		{"never up", []tunnel.Session{never}, 0, ";", false},
		{"up", []tunnel.Session{up}, 0, "n2 up;", false},
		{"down", []tunnel.Session{down}, 0, "n2 down, alone;", false},
		{"up again", []tunnel.Session{up}, short, "not alone;", true},
		{"still", []tunnel.Session{up}, 0, ";", true},
		{"down before the time is over", []tunnel.Session{down}, 2 * moment, "alone;", false},
		{"not the only one", []tunnel.Session{down, other}, 0, "n3 up, not alone;", false},
		{"up once more", []tunnel.Session{up}, short, "n3 unknown;", true},
		{"for long enough", []tunnel.Session{up}, moment, ";n2 up", false},
		{"own ovs-vswitchd is new", []tunnel.Session{never}, 0, "n2 unknown;", false},
		{"and the node answers", []tunnel.Session{up}, 0, "n2 up;", false},
		{"no session any more", nil, 0, "n2 unknown;", false},
	} {
		have := s.report(c.sessions...) + ";" + s.pass(c.pass)
		if s.expect(t, c.what, have, c.want); s.wake > 0 != c.wake {
			t.Errorf("%s: to be asked again at %v, want any %t", c.what, s.wake, c.wake)
		}
	}
}
