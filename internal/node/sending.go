package node

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/plan"
)

// sending is what is to be sent to links, for the holder's machine and about the node's own addresses: one goroutine
// sends it in order, and the loop does not wait for that. What waits already is not added again, so that no more waits
// than there are addresses.
type sending struct {
	mu       sync.Mutex
	own      []plan.Announcement
	announce []netip.Addr
	probe    []plan.Announcement
	wake     chan struct{}
}

func newSending() *sending { return &sending{wake: make(chan struct{}, 1)} }

func (s *sending) add(announce []netip.Addr, probe []plan.Announcement) {
	if len(announce)+len(probe) == 0 {
		return
	}
	s.mu.Lock()
	s.announce, s.probe = queued(s.announce, announce), queued(s.probe, probe)
	s.mu.Unlock()
	s.begin()
}

// addOwn adds announcements of addresses that are the node's own, which no plan has.
func (s *sending) addOwn(own []plan.Announcement) {
	s.mu.Lock()
	s.own = queued(s.own, own)
	s.mu.Unlock()
	s.begin()
}

func (s *sending) begin() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func queued[T comparable](queue, more []T) []T {
	for _, x := range more {
		if !slices.Contains(queue, x) {
			queue = append(queue, x)
		}
	}
	return queue
}

// all sends what waits, probes last.
func (s *sending) all(own func(plan.Announcement), announce func(netip.Addr), probe func(plan.Announcement)) {
	s.mu.Lock()
	mine, announces, probes := s.own, s.announce, s.probe
	s.own, s.announce, s.probe = nil, nil, nil
	s.mu.Unlock()
	for _, a := range mine {
		own(a)
	}
	for _, ip := range announces {
		announce(ip)
	}
	for _, a := range probes {
		probe(a)
	}
}
