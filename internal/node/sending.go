package node

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// sending is what the holder's machine wants sent to links: one goroutine sends it in order, and the loop does not wait
// for that. A waiting packet is not added again, so that no more packets wait than there are addresses.
type sending struct {
	mu       sync.Mutex
	announce []netip.Addr
	probe    []plan.Announcement
	wake     chan struct{}
}

func newSending() *sending { return &sending{wake: make(chan struct{}, 1)} }

func (s *sending) queueSends(announce []netip.Addr, probe []plan.Announcement) {
	if len(announce)+len(probe) == 0 {
		return
	}
	s.mu.Lock()
	s.announce, s.probe = appendMissing(s.announce, announce), appendMissing(s.probe, probe)
	s.mu.Unlock()
	plane.SignalOnce(s.wake)
}

func appendMissing[T comparable](queue, more []T) []T {
	for _, x := range more {
		if !slices.Contains(queue, x) {
			queue = append(queue, x)
		}
	}
	return queue
}

// sendAll sends what waits, announcements first.
func (s *sending) sendAll(announce func(netip.Addr), probe func(plan.Announcement)) {
	s.mu.Lock()
	announces, probes := s.announce, s.probe
	s.announce, s.probe = nil, nil
	s.mu.Unlock()
	for _, ip := range announces {
		announce(ip)
	}
	for _, a := range probes {
		probe(a)
	}
}
