package probe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/probe"
)

const (
	leaseLasts  = 40 * time.Second
	renewEvery  = leaseLasts / 4
	readEvery   = leaseLasts / 8
	inDoubtFor  = 5 * leaseLasts
	noticedWith = readEvery + time.Second // what reading adds
)

// agents are a cluster whose agents renew their Leases in turns, and a reader.
type agents struct {
	judge    probe.LeaseJudge
	now      time.Duration
	leases   map[string]probe.Lease
	renewed  map[string]time.Duration
	silent   map[string]bool // agents that do not renew
	refused  bool            // the API server takes no writes
	unread   bool            // nor does it answer the reader
	told     []string        // "n1 dead at 40s"
	begun    time.Duration
	lastRead time.Duration
}

func newAgents(n int) *agents {
	a := &agents{now: time.Hour, begun: time.Hour, leases: map[string]probe.Lease{},
		renewed: map[string]time.Duration{}, silent: map[string]bool{}}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		a.renewed[name] = a.now - time.Duration(i)*renewEvery/time.Duration(n)
		a.leases[name] = probe.Lease{Version: "0", Lasts: leaseLasts}
	}
	return a
}

func (a *agents) renew(name string) {
	a.renewed[name] = a.now
	a.leases[name] = probe.Lease{Version: a.now.String(), Lasts: leaseLasts}
}

// pass lets time pass, second by second.
func (a *agents) pass(d time.Duration) *agents {
	for end := a.now + d; a.now < end; a.now += time.Second {
		for name, last := range a.renewed {
			if !a.silent[name] && !a.refused && a.now-last >= renewEvery {
				a.renew(name)
			}
		}
		if a.unread || a.now-a.lastRead < readEvery {
			continue
		}
		a.lastRead = a.now
		for _, c := range a.judge.Look(a.now, a.leases) {
			what := "alive"
			if c.Dead {
				what = "dead"
			}
			a.told = append(a.told, fmt.Sprintf("%s %s", c.Node, what))
		}
	}
	return a
}

func (a *agents) tells(t *testing.T, want string) {
	t.Helper()
	slices.Sort(a.told)
	if have := strings.Join(a.told, ", "); have != want {
		t.Errorf("after %s: told of %q, want %q", a.now-a.begun, have, want)
	}
	a.told = nil
}

// TestDeadAgent: one of three is dead after its Lease's time, not before; one that comes back lives again.
func TestDeadAgent(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		a := newAgents(n).pass(time.Minute)
		a.silent["n1"] = true
		a.pass(leaseLasts-renewEvery-time.Second).tells(t, "")
		a.pass(renewEvery+noticedWith).tells(t, "n1 dead")
		a.pass(time.Hour).tells(t, "")
		a.silent["n1"] = false
		a.pass(noticedWith).tells(t, "n1 alive")
	}
}

// TestAgentsRestart: an agent that is away for a shorter time moves nothing, however often.
func TestAgentsRestart(t *testing.T) {
	a := newAgents(3).pass(time.Minute)
	for range 20 {
		for _, name := range []string{"n1", "n2", "n3"} {
			a.silent[name] = true
			a.pass(leaseLasts - renewEvery - readEvery)
			a.silent[name] = false
			a.pass(renewEvery)
		}
	}
	a.tells(t, "")
}

// TestNoLease: an agent that never wrote a Lease is not judged, nor is one whose Lease was deleted.
func TestNoLease(t *testing.T) {
	a := newAgents(3).pass(time.Minute)
	a.silent["n1"] = true
	delete(a.leases, "n1")
	a.pass(time.Hour).tells(t, "")
	a.renew("n1")
	a.pass(leaseLasts-2*readEvery).tells(t, "")
	a.pass(3*readEvery).tells(t, "n1 dead")
	delete(a.leases, "n1")
	a.pass(noticedWith).tells(t, "n1 alive")
}

// TestControllerStarts: it gives those whose Leases are old the full time.
func TestControllerStarts(t *testing.T) {
	a := newAgents(3)
	a.silent["n1"] = true
	a.pass(leaseLasts-readEvery).tells(t, "")
	a.pass(2*readEvery).tells(t, "n1 dead")
}

// TestWayToTheAPI: an outage of any length, of writes, of reads or of both, has nobody taken for dead while it is not
// beyond all doubt, nor after it.
func TestWayToTheAPI(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAgents(rapid.IntRange(1, 12).Draw(t, "agents")).pass(time.Minute)
		a.refused = rapid.Bool().Draw(t, "refused")
		a.unread = rapid.Bool().Draw(t, "unread")
		most := inDoubtFor - renewEvery - readEvery
		if a.unread {
			most = 3 * time.Hour
		}
		a.pass(time.Duration(rapid.Int64Range(0, int64(most/time.Second)).Draw(t, "outage")) * time.Second)
		if a.unread {
			a.unread = false
			a.pass(time.Duration(rapid.IntRange(0, 100).Draw(t, "longer")) * time.Second)
		}
		a.refused = false
		// each tries again within half of a renewal's distance
		for name := range a.renewed {
			a.renewed[name] = a.now - time.Duration(rapid.IntRange(int(renewEvery/2/time.Second),
				int(renewEvery/time.Second)).Draw(t, name))*time.Second
		}
		a.pass(10 * time.Minute)
		if len(a.told) > 0 {
			t.Fatalf("told of %v", a.told)
		}
	})
}

// TestHalfIsCutOff: a part that is at least half is in doubt for five times as long, and is dead then.
func TestHalfIsCutOff(t *testing.T) {
	for _, c := range []struct {
		of   int
		lost []string
	}{{4, []string{"n1", "n2"}}, {3, []string{"n2", "n3"}}, {3, []string{"n1", "n2", "n3"}}, {1, []string{"n1"}}} {
		a := newAgents(c.of).pass(time.Minute)
		var dead []string
		for _, name := range c.lost {
			a.silent[name] = true
			dead = append(dead, name+" dead")
		}
		a.pass(inDoubtFor-renewEvery-readEvery).tells(t, "")
		a.pass(renewEvery+2*readEvery).tells(t, strings.Join(dead, ", "))
	}
}

// TestFewAtOnce: less than half are dead in time, and another one that follows them is, too.
func TestFewAtOnce(t *testing.T) {
	a := newAgents(5).pass(time.Minute)
	a.silent["n1"], a.silent["n2"] = true, true
	a.pass(leaseLasts+noticedWith).tells(t, "n1 dead, n2 dead")
	a.silent["n3"] = true
	a.pass(leaseLasts+noticedWith).tells(t, "n3 dead")
}

// TestLeaseIsBounded: what a Lease says of itself cannot make its agent dead at once, nor live for ever.
func TestLeaseIsBounded(t *testing.T) {
	for says, want := range map[time.Duration]time.Duration{-time.Second: 20 * time.Second, 0: 20 * time.Second,
		time.Minute: time.Minute, 48 * time.Hour: time.Hour} {
		if have := probe.Lasting(says); have != want {
			t.Errorf("a Lease for %s lasts %s, want %s", says, have, want)
		}
	}
}
