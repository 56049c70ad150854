package conntrack

import (
	"context"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/plan"
)

// Fake is a Target in memory. Its Zones are what a test says.
type Fake struct {
	Zones map[string]int

	mu      sync.Mutex
	entries []Entry
	dumps   int
}

// NewFake tracks these connections.
func NewFake(zones map[string]int, entries ...Entry) *Fake {
	return &Fake{Zones: zones, entries: entries}
}

// Add tracks one more connection.
func (f *Fake) Add(e Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, e)
}

// Entries are the connections tracked now.
func (f *Fake) Entries() []Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.entries)
}

// Dumps is how often a zone was read.
func (f *Fake) Dumps() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dumps
}

func (f *Fake) CTZone(_ context.Context, name string) (int, bool) {
	z, ok := f.Zones[name]
	return z, ok
}

func (f *Fake) Dump(_ context.Context, zone int, like ...Entry) ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dumps++
	return slices.DeleteFunc(slices.Clone(f.entries), func(e Entry) bool {
		return e.Zone != zone || len(like) > 0 && !slices.ContainsFunc(like, e.isLike)
	}), nil
}

func (f *Fake) Flush(_ context.Context, entries ...Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = slices.DeleteFunc(f.entries, func(have Entry) bool {
		return slices.ContainsFunc(entries,
			func(e Entry) bool { return have.Zone == e.Zone && have.Proto == e.Proto && have.Orig == e.Orig })
	})
	return nil
}

// FlushPairs ends connections in all zones.
func (f *Fake) FlushPairs(_ context.Context, pairs ...plan.Datagram) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = slices.DeleteFunc(f.entries, func(e Entry) bool {
		pair, is := e.balancedPair()
		pair.OVN = true
		return is && slices.Contains(pairs, pair)
	})
	return nil
}
