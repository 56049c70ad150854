package kube

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	"github.com/egret-net/egret/internal/world"
)

// TestSeen names versions that another watch reaches by what it brings: those of objects and of their ends. Only a list
// that lacks what was known names its own version. A history that went back begins again.
func TestSeen(t *testing.T) {
	table := newTable(world.New("", &world.Config{}))
	table.back = func(string, string) {}
	for _, c := range []struct {
		what string
		do   func() error
		want string
	}{
		{"a list", func() error { return table.Replace([]any{version("a", "7"), version("b", "9")}, "20") }, "9"},
		{"a bookmark", func() error { table.UpdateResourceVersion("25"); return nil }, "9"},
		{"a change", func() error { return table.Update(version("a", "30")) }, "30"},
		{"what was observed", func() error { return table.observeObject(version("c", "32")) }, "32"},
		{"an older change", func() error { return table.Update(version("b", "31")) }, "32"},
		{"an end", func() error { return table.Delete(version("c", "33")) }, "33"},
		{"the same list", func() error {
			return table.Replace([]any{version("a", "30"), version("b", "31")}, "40")
		}, "33"},
		{"a list without one", func() error { return table.Replace([]any{version("a", "30")}, "41") }, "41"},
		{"a history that went back", func() error { return table.Replace([]any{version("a", "5")}, "6") }, "5"},
	} {
		must(t, c.do())
		if have := table.seenVersion(); have != c.want {
			t.Errorf("after %s: %q, want %q", c.what, have, c.want)
		}
		want := c.want
		if c.what == "a list without one" {
			want = "33" // nobody's watch brings the list's version
		}
		if have := table.newest; have != want {
			t.Errorf("after %s the newest is %q, want %q", c.what, have, want)
		}
	}
}

// TestNodesAreRestless: a question names the newest Node, for subnets decide whose addresses pods have. An answer names
// none: the asking agent's watch of Nodes alone may be late for a moment.
func TestNodesAreRestless(t *testing.T) {
	s := NewSource(nil, nil, Pods(), Nodes())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: "7"}}
	must(t, s.tableFor("pods", "ns/p").Replace([]any{pod}, "20"))
	must(t, s.tableFor("nodes", "a").Replace([]any{version("a", "9")}, "20"))
	if seen, newest := s.Seen(), s.Newest(); seen["nodes"] != "9" || newest["nodes"] != "" || newest["pods"] != "7" {
		t.Errorf("asks by %v, answers by %v", seen, newest)
	}
}

// TestAsksByNetworks: a question names the newest definition of a network, which decides by which addresses pods have
// claims. An agent that does not know the kind answers all the same.
func TestAsksByNetworks(t *testing.T) {
	s, older := NewSource(nil, nil, Pods(), NetworkDefinitions()), NewSource(nil, nil, Pods())
	d := &cniv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d",
		ResourceVersion: "8"}}
	must(t, s.tableFor(pluralDefinitions, "ns/d").Replace([]any{d}, "20"))
	seen := s.Seen()
	if seen[pluralDefinitions] != "8" {
		t.Errorf("asks by %v", seen)
	}
	must(t, older.Brought(t.Context(), seen))
}

// TestSeenPods: what comes after the first list is newer than the end of each pod that is not in it, and so again when
// history went back.
func TestSeenPods(t *testing.T) {
	s := NewSource(nil, nil, Pods(), Nodes())
	table := s.tables[0]
	for _, c := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"nothing", func() error { return nil }, false},
		{"the first list", func() error { return table.Replace([]any{pod("7")}, "20") }, false},
		{"a bookmark", func() error { table.UpdateResourceVersion("25"); return nil }, false},
		{"a change", func() error { return table.Update(pod("30")) }, true},
		{"a history that went back", func() error { return table.Replace([]any{pod("5")}, "6") }, false},
		{"its first change", func() error { return table.Update(pod("7")) }, true},
	} {
		if must(t, c.do()); s.SeenPods() != c.want {
			t.Errorf("after %s: %t", c.what, !c.want)
		}
	}
}

// TestReached waits for lists, changes, ends and bookmarks, and until the world has what these brought. A kind that is
// not known, and a version that cannot be compared, are not waited for.
func TestReached(t *testing.T) {
	for what, bring := range map[string]func(*table) error{
		"list":     func(t *table) error { return t.Replace(nil, "10") },
		"change":   func(t *table) error { return t.Update(pod("10")) },
		"end":      func(t *table) error { return t.Delete(pod("11")) },
		"bookmark": func(t *table) error { t.UpdateResourceVersion("12"); return nil },
	} {
		s := NewSource(nil, nil, Pods(), Nodes())
		table := s.tables[0]
		must(t, table.Replace(nil, "9"))
		wait := Versions{"pods": "10", "unheardof": "99"}
		if err := reached(t, s, wait); !errors.Is(err, context.DeadlineExceeded) || len(table.waiting) > 0 {
			t.Errorf("%s: reached before: %v, %d wait", what, err, len(table.waiting))
		}
		done := make(chan error, 1)
		go func() { done <- s.Reached(t.Context(), wait) }()
		must(t, bring(table))
		w := world.New("", &world.Config{})
		for waits := true; waits; {
			select {
			case c := <-s.Changes():
				c(w)
			case err := <-done:
				must(t, err)
				waits = false
			}
		}
		if has := w.Pod("ns/p") != nil; has != (what == "change") {
			t.Errorf("%s: the world has the pod: %t", what, has)
		}
	}
}

// TestReachesNothingByAnEndedHistory: versions that were reached before a restore of etcd say nothing of those that
// follow it. The list of the new history does.
func TestReachesNothingByAnEndedHistory(t *testing.T) {
	s := NewSource(nil, slog.New(slog.DiscardHandler), Pods())
	must(t, s.tables[0].Replace(nil, "90"))
	of := Versions{"pods": "12"}
	if !s.HasReached(of) {
		t.Error("has not reached what is older than its list")
	}
	s.MarkForked(Pods())
	if err := reached(t, s, of); !errors.Is(err, context.DeadlineExceeded) || s.HasReached(of) {
		t.Errorf("answers by the former history: %v", err)
	}
	if err := s.CheckListed(); err == nil || !strings.Contains(err.Error(), "pods have not been listed") {
		t.Errorf("of what has not been listed since: %v", err)
	}
	must(t, s.tables[0].Replace(nil, "11"))
	must(t, s.CheckListed())
	if s.HasReached(of) {
		t.Error("has reached what is newer than the list of the new history")
	}
	s.tables[0].UpdateResourceVersion("12")
	if !s.HasReached(of) {
		t.Error("has not reached what the watch has brought of the new history")
	}
}

// reached gives Reached a moment.
func reached(t *testing.T, s *Source, v Versions) error {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	return s.Reached(ctx, v)
}

func pod(version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: version}}
}
