package conntrack

import (
	"slices"
	"sync"
	"time"
)

// lookAgain returns when connections are looked at again after a change. ovs-vswitchd replaces the flows that its
// datapath has cached one after the other (OVS 3.5): a packet that meets a former flow makes a connection by the former
// rules, after the first look. On a busy machine that may happen after the second look, too. Three seconds after an
// address is taken from a node nothing leaves with it any more.
func lookAgain() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}
}

// lookSoon returns the additional times where the first look has ended any connection: a pod was sending just then,
// and its next packet, some milliseconds later, may have met a cached flow. It would leave with the former source until
// a second has passed.
func lookSoon() []time.Duration {
	return []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}
}

// lookAtOthers returns the times after a change of another program's translations. A pod that is deleted by force ends
// later than its object, within its grace period of 30 s in most cases: its rules are there until then, and make
// entries that nothing else ends.
func lookAtOthers() []time.Duration { return append(lookAgain(), time.Minute) }

// recheck calls due with the keys whose connections must be looked at again, outside of the agent's loop.
type recheck[K comparable] struct {
	due func([]K)

	mu      sync.Mutex
	times   map[K][]time.Time // when each is looked at, ascending
	timer   *time.Timer
	looking bool
	pause   time.Time // until when there is no other look
}

// beginFor schedules looks for keys that have changed, at ascending times after now. A later change of a key replaces
// its times.
func (r *recheck[K]) beginFor(after []time.Duration, changed ...K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = map[K][]time.Time{}
	}
	now := time.Now()
	for _, k := range changed {
		r.times[k] = nil
		for _, d := range after {
			r.times[k] = append(r.times[k], now.Add(d))
		}
	}
	r.setTimer()
}

// setTimer sets the timer for the next look.
func (r *recheck[K]) setTimer() {
	if r.looking || len(r.times) == 0 {
		return
	}
	var next time.Time
	for _, times := range r.times {
		if next.IsZero() || times[0].Before(next) {
			next = times[0]
		}
	}
	if next.Before(r.pause) {
		next = r.pause
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = time.AfterFunc(time.Until(next), r.lookAtDue)
}

// lookPause is how many times longer than a look the pause after it is: long looks do not keep a daemon busy.
const lookPause = 4

func (r *recheck[K]) lookAtDue() {
	r.mu.Lock()
	if r.looking {
		r.mu.Unlock()
		return
	}
	begin, due := time.Now(), r.takeDue()
	r.looking = true
	r.mu.Unlock()
	if len(due) > 0 {
		r.due(due)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking, r.pause = false, time.Now().Add(lookPause*time.Since(begin))
	r.setTimer()
}

// takeDue returns the keys whose time has come, and removes these times.
func (r *recheck[K]) takeDue() (due []K) {
	now := time.Now()
	for k, times := range r.times {
		left := slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(now) })
		if len(left) < len(times) {
			due = append(due, k)
		}
		if r.times[k] = left; len(left) == 0 {
			delete(r.times, k)
		}
	}
	return due
}
