package conntrack

import (
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
)

// lookAgain is when after a change connections are looked at once more. ovs-vswitchd replaces the flows that its
// datapath has cached one after the other (OVS 3.5): a packet that came by a former one makes a connection by the
// former rules, after the first look. On a busy machine that can be so after the second one, too, and three seconds
// after an address is taken from a node nothing leaves with it any more.
func lookAgain() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}
}

// lookSoon is when it is looked besides, where the first look has ended any connection: a pod was sending just then,
// and its next packet, some milliseconds later, may have met a flow that was cached. It would leave with the former
// source until a second has passed.
func lookSoon() []time.Duration {
	return []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}
}

// recheck calls due with the Sources whose connections must be looked at once more, outside of the agent's loop.
type recheck struct {
	due func([]plan.Source)

	mu      sync.Mutex
	times   map[plan.Source][]time.Time // when each is looked at, ascending
	timer   *time.Timer
	looking bool
	pause   time.Time // until when there is no other look
}

// beginFor is called when Sources change, with the times after that, ascending. A later change of a Source begins
// again.
func (r *recheck) beginFor(after []time.Duration, changed ...plan.Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = map[plan.Source][]time.Time{}
	}
	now := time.Now()
	for _, s := range changed {
		r.times[s] = nil
		for _, d := range after {
			r.times[s] = append(r.times[s], now.Add(d))
		}
	}
	r.setTimer()
}

// setTimer sets the timer for the next look.
func (r *recheck) setTimer() {
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

func (r *recheck) lookAtDue() {
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

// takeDue returns the Sources whose time has come, and takes these times away.
func (r *recheck) takeDue() (due []plan.Source) {
	now := time.Now()
	for s, times := range r.times {
		left := slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(now) })
		if len(left) < len(times) {
			due = append(due, s)
		}
		if r.times[s] = left; len(left) == 0 {
			delete(r.times, s)
		}
	}
	return due
}
