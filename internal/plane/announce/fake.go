package announce

import (
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/plan"
)

// Fake is a Sender that records.
type Fake struct {
	// Fail, if set, says why an announcement cannot be sent.
	Fail func(a plan.Announcement) error

	mu     sync.Mutex
	sent   []plan.Announcement
	probed []plan.Announcement
}

// Probe records a; it does not fail.
func (f *Fake) Probe(a plan.Announcement) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probed = append(f.probed, a)
	return nil
}

// Probed is everything asked for so far, in order.
func (f *Fake) Probed() []plan.Announcement {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.probed)
}

// Send records a.
func (f *Fake) Send(a plan.Announcement) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Fail != nil {
		if err := f.Fail(a); err != nil {
			return err
		}
	}
	f.sent = append(f.sent, a)
	return nil
}

// Sent is everything sent so far, in order.
func (f *Fake) Sent() []plan.Announcement {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}
