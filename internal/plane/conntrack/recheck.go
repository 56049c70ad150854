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

// recheck calls due some times after a change; a later change begins anew.
type recheck struct {
	after []time.Duration // ascending
	due   func()

	mu    sync.Mutex
	timer *time.Timer
}

// begin is called at a change.
func (r *recheck) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.schedule(0, 0)
}

// schedule prepares the look of that number, so long after the change; the former one was at past.
func (r *recheck) schedule(number int, past time.Duration) {
	if number == len(r.after) {
		return
	}
	at := r.after[number]
	r.timer = time.AfterFunc(at-past, func() {
		r.due()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.schedule(number+1, at)
	})
}
