package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
)

// lengthy is an API server that takes its time over each status.
type lengthy struct {
	*api
	takes time.Duration
}

func (s lengthy) Patch(ctx context.Context, p kube.Patch) (string, error) {
	if p.Subresource == "status" && !sleep(ctx, s.takes) {
		return "", ctx.Err()
	}
	return s.api.Patch(ctx, p)
}

// runAgents has every node hold what it is assigned or leaves, as soon as it is written.
func (a *api) runAgents(ctx context.Context) {
	for sleep(ctx, 200*time.Millisecond) {
		for node, holds := range a.named() {
			a.hold(node, holds)
		}
	}
}

// named is what the statuses name each node for: addresses, by EgressIP.
func (a *api) named() map[string]map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	by := map[string]map[string][]string{}
	for node := range a.nodes {
		by[node] = map[string][]string{}
	}
	for name, e := range a.eips {
		for _, i := range e.Status.Items {
			by[i.Node][name] = append(by[i.Node][name], i.EgressIP)
		}
		for _, l := range e.Status.Leaving {
			by[l.Node][name] = append(by[l.Node][name], l.EgressIP)
		}
	}
	return by
}

// places are the nodes that a status assigns, and those that leave.
func (a *api) places(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s []string
	for _, i := range a.eips[name].Status.Items {
		s = append(s, i.Node)
	}
	s = append(s, "leaving")
	for _, l := range a.eips[name].Status.Leaving {
		s = append(s, l.Node)
	}
	return strings.Join(s, " ")
}

// notes are the texts of all Events of some reasons so far.
func (a *api) notes(reasons string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s []string
	for _, e := range a.events {
		if strings.Contains(reasons, e.Reason) {
			s = append(s, e.Note)
		}
	}
	return strings.Join(s, "; ")
}

func (a *api) setFail(fail func(object string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = fail
}

func (a *api) unlabel(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.nodes[node].DeepCopy()
	n.Labels = nil
	a.showNode(n)
}

// refused has n1 lose its label while no status of e can be written, and then all can again.
func refused(t *testing.T, agents bool, lasts time.Duration) *api {
	a, _, _, _ := oneAssigned(t, time.Millisecond, "n1", "n2", "n3", "n4")
	a.hold("n1", map[string][]string{"e": {"172.18.0.33"}})
	if agents {
		go a.runAgents(t.Context())
	}
	time.Sleep(5 * time.Second)
	a.setFail(func(object string) error {
		if object == "egressips/e" {
			return errors.New("a webhook denied the request")
		}
		return nil
	})
	a.unlabel("n1")
	time.Sleep(lasts)
	a.setFail(func(string) error { return nil })
	return a
}

// TestRefusedStatusBlamesNobody: while a status cannot be written, no successor is too late with what it was never
// told, and the former holder goes on.
func TestRefusedStatusBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := refused(t, true, 45*time.Second)
		eventually(t, "the first status", "n2 leaving n1",
			func() string { return strings.Replace(a.places("e"), "n1 leaving", "", 1) })
		time.Sleep(10 * time.Second)
		if have := a.places("e"); have != "n2 leaving" {
			t.Errorf("in the end: %q", have)
		}
		const want = "172.18.0.33 moves from n1 (NodeUnlabelled) to n2"
		if have := a.notes("Moved NodeProblem"); have != want {
			t.Errorf("Events: %q, want %q", have, want)
		}
	})
}

// TestLeavesFromWhenWritten: the time of a former holder, and that of its successor, begin when the status says so.
func TestLeavesFromWhenWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := refused(t, false, 45*time.Second)
		eventually(t, "the first status", "n2 leaving n1",
			func() string { return strings.Replace(a.places("e"), "n1 leaving", "", 1) })
		a.mu.Lock()
		age := time.Since(a.eips["e"].Status.Leaving[0].Since.Time)
		a.mu.Unlock()
		if age > 100*time.Millisecond {
			t.Errorf("n1 leaves since %v ago", age)
		}
		time.Sleep(9800 * time.Millisecond)
		if have := a.places("e"); have != "n2 leaving n1" {
			t.Errorf("after 9.8 s: %q", have)
		}
		time.Sleep(time.Second)
		if have := a.places("e"); have != "n3 leaving n1 n2" {
			t.Errorf("n2 does not hold it; after 10.8 s: %q", have)
		}
		a.hold("n3", map[string][]string{"e": {"172.18.0.33"}})
		eventually(t, "in the end", "n3 leaving", func() string { return a.places("e") })
	})
}

// TestLateWatchStillEndsLeaving: what was written is seen only after the time of the former holder is over. It is taken
// off all the same.
func TestLateWatchStillEndsLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, _ := oneAssigned(t, time.Millisecond, "n1", "n2")
		a.hold("n1", map[string][]string{"e": {"172.18.0.33"}})
		a.hold("n2", map[string][]string{"e": {"172.18.0.33"}}) // the successor's report comes first
		time.Sleep(time.Second)
		n := aNode("n1", 2)
		n.Labels = nil
		a.mu.Lock()
		n.Annotations = a.nodes["n1"].Annotations
		a.mu.Unlock()
		a.putNode(n)
		time.Sleep(500 * time.Microsecond) // the watch is about to show that
		a.mu.Lock()
		a.delay = 40 * time.Second
		a.mu.Unlock()
		time.Sleep(90 * time.Second)
		if have := a.places("e"); have != "n2 leaving" {
			t.Errorf("after 90 s: %q", have)
		}
	})
}

// TestManyStatusesBlameNobody: a thousand EgressIPs at once, and an API server that takes 450 ms over each, keep
// healthy nodes out of Events.
func TestManyStatusesBlameNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		for i := range 3 {
			a.putNode(aNode(fmt.Sprint("n", i), i+2))
		}
		const n = 1000
		for i := range n {
			a.putEgressIP(anEgressIP(fmt.Sprint("e", i), n-i, fmt.Sprintf("172.18.%d.%d", 1+i/250, 1+i%250)))
		}
		c := controller.New(config(), all.ServedKinds(), a, lengthy{a, 450 * time.Millisecond}, controller.NewMetrics(),
			slog.New(slog.NewTextHandler(io.Discard, nil)))
		go a.run(t.Context())
		go c.Run(t.Context())
		go a.runAgents(t.Context())
		c.Lead(t.Context())
		time.Sleep(40 * time.Second)
		if last := a.places(fmt.Sprint("e", n-1)); !strings.HasSuffix(last, "leaving") || last == "leaving" {
			t.Errorf("the last: %q", last)
		}
		if have := a.notes("Moved NodeProblem"); have != "" {
			t.Errorf("Events: %.300s", have)
		}
	})
}
