package conntrack

import (
	"sync"
	"time"
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

// recheck calls due some times after a change; a later change begins anew.
type recheck struct {
	due func()

	mu    sync.Mutex
	turn  int // of the latest change: a look that was under way then prepares no other
	timer *time.Timer
}

// begin is called at a change, with the times at which it is looked after it, ascending.
func (r *recheck) begin(after []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.turn++
	r.schedule(r.turn, after, 0)
}

// schedule prepares the first of these looks of a turn; the former one was at past.
func (r *recheck) schedule(turn int, after []time.Duration, past time.Duration) {
	if len(after) == 0 || turn != r.turn {
		return
	}
	r.timer = time.AfterFunc(after[0]-past, func() {
		r.due()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.schedule(turn, after[1:], after[0])
	})
}
