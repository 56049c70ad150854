package kube

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStillness tells watches what they bring, and looks when it is asked to: a watch that brings something at least
// once a minute is left alone, and one that brings nothing is ended in time, again and again.
func TestStillness(t *testing.T) {
	for name, c := range map[string]struct {
		signs, tries func(elapsed time.Duration) uint64
		ends, asks   bool
		late         bool
	}{
		"it sends bookmarks": {signs: each(time.Minute), tries: never},
		"it sends bookmarks once it was asked": {signs: func(at time.Duration) uint64 {
			return uint64(max(0, at-time.Minute) / time.Minute)
		}, tries: never, asks: true},
		"it brings nothing":           {signs: never, tries: never, asks: true, ends: true, late: true},
		"it begins again each minute": {signs: never, tries: each(time.Minute)},
		"it begins again once, silent": {signs: never, tries: each(5 * time.Minute), asks: true, ends: true,
			late: true},
	} {
		var s stillness
		start := time.Unix(1000, 0)
		asks, last, longest := 0, start, time.Duration(0)
		for now := start; now.Sub(start) < 10*time.Minute; {
			elapsed := now.Sub(start)
			do, again := s.judgeSigns(c.signs(elapsed), c.tries(elapsed), now)
			if do == askForBookmark {
				asks++
			}
			if do == endWatch {
				longest, last = max(longest, now.Sub(last)), now
			}
			if again.Sub(now) > lookEvery || !again.After(now) {
				t.Fatalf("%s: looks again after %v", name, again.Sub(now))
			}
			now = again
		}
		if (longest > 0) != c.ends || (asks > 0) != c.asks || s.late != c.late {
			t.Errorf("%s: ends %v, asks %d, late %v", name, longest > 0, asks, s.late)
		}
		if name == "it brings nothing" && longest > StillAtMost {
			t.Errorf("%s: nothing was listed for %v", name, longest)
		}
		if c.late && !s.heard.Equal(start) {
			t.Errorf("%s: has brought nothing since %v", name, s.heard.Sub(start))
		}
	}
}

func never(time.Duration) uint64 { return 0 }

func each(pause time.Duration) func(time.Duration) uint64 {
	return func(elapsed time.Duration) uint64 { return uint64(elapsed / pause) }
}

// TestSourceEndsAWatchThatStandsStill: what such a watch does not bring comes with a list, which is a consistent read.
func TestSourceEndsAWatchThatStandsStill(t *testing.T) {
	h := &history{version: 9000, name: "before", stop: make(chan struct{})}
	source, w, until := follow(t, h, slog.New(slog.DiscardHandler))
	until("watching", func() bool { _, watches := h.counts(); return watches == 1 })
	h.mu.Lock()
	h.version, h.name = 9001, "after"
	h.mu.Unlock()
	now := time.Unix(1000, 0)
	until("listed", func() bool {
		now = now.Add(5 * time.Second)
		source.LookAtWatches(now)
		return slices.Equal(w.EgressIPs(), []string{"after"})
	})
	if lists, _ := h.counts(); lists != 2 || h.oldest != "" {
		t.Errorf("%d lists, one of version %q or later", lists, h.oldest)
	}
	said := source.StandingStill()
	if len(said) != 1 || !strings.HasPrefix(said[0], "the watch of egressips has brought nothing since 1970-01-01T00:16:") {
		t.Errorf("says %q", said)
	}
	until("watching again", func() bool { _, watches := h.counts(); return watches == 2 })
	source.tables[0].UpdateResourceVersion("9002")
	if source.LookAtWatches(now); len(source.StandingStill()) > 0 {
		t.Errorf("after a bookmark it still says %q", source.StandingStill())
	}
}
