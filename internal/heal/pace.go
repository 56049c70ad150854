// Package heal bounds how often a program writes again what somebody else has written over.
//
// In: times. Out: how long to wait. It does no I/O and asks no clock.
package heal

import "time"

const (
	// FirstPause follows each of the first patient rewrites. From then on each pause is twice the one before, up to
	// LastPause.
	FirstPause = time.Second
	LastPause  = 30 * time.Second

	patient = 8
)

// Pace spaces rewrites of one thing. The zero value has rewritten nothing. The first rewrite is made at once: two
// writers that do not agree must not keep the API server busy.
type Pace struct {
	last  time.Time
	count int // rewrites without a rest
}

// Wait returns how long the next rewrite has to wait.
func (p *Pace) Wait(now time.Time) time.Duration { return max(0, p.last.Add(p.nextPause()).Sub(now)) }

// Rewritten notes a rewrite.
func (p *Pace) Rewritten(now time.Time) {
	if p.Rested(now) {
		p.count = 0
	}
	p.last, p.count = now, p.count+1
}

// Rested reports whether the last rewrite is so long ago that it does not count any more.
func (p *Pace) Rested(now time.Time) bool { return !now.Before(p.last.Add(p.nextPause() + LastPause)) }

// nextPause is how long the next rewrite keeps from the last one.
func (p *Pace) nextPause() time.Duration {
	if p.count == 0 {
		return 0
	}
	return min(FirstPause<<min(max(0, p.count-patient), 5), LastPause)
}
