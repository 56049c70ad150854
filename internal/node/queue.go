package node

import (
	"context"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/world"
)

// Change edits the world. It runs in the loop, and nowhere else.
type Change = func(*world.World)

// queue has what the loop has yet to take in, and how far its rounds are, for those who wait. Any goroutine may use it.
type queue struct {
	wake chan struct{}

	mu      sync.Mutex
	pending []Change
	room    chan struct{} // closed and replaced when there is some again
	round   uint64        // rounds begun
	done    uint64        // the latest round that went through
	cleared uint64        // the latest that also left nothing of former plans
	passed  chan struct{} // closed and replaced when done grows
	synced  bool
	reread  bool
	look    plan.Tables // planes whose targets must be read, whether or not the plan changes
	apply   bool        // all targets must be read, whether or not the plan changes
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), room: make(chan struct{}), passed: make(chan struct{})}
}

// mostPending is how many changes may wait for a round before those who bring more have to wait, too: a round takes
// seconds while a target is slow.
const mostPending = 4096

// Do has change made in the loop, soon. It never waits: for the loop itself, and for those who have one change at a
// time to bring.
func (q *queue) Do(change Change) {
	q.mu.Lock()
	q.pending = append(q.pending, change)
	q.mu.Unlock()
	q.wakeUp()
}

// Offer has change made in the loop, soon, and waits for room among those that are to be made. Its error is ctx's; the
// change is not made then.
func (q *queue) Offer(ctx context.Context, change Change) error {
	_, err := q.offerChange(ctx, change)
	return err
}

// offerChange returns the round that takes the change in.
func (q *queue) offerChange(ctx context.Context, change Change) (round uint64, err error) {
	for {
		q.mu.Lock()
		room := q.room
		if len(q.pending) < mostPending {
			q.pending = append(q.pending, change)
			round, room = q.round+1, nil // the next round to begin takes it in
		}
		q.mu.Unlock()
		if room == nil {
			q.wakeUp()
			return round, nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// DoAndWait has change made and returns when the planes hold the plan with it.
func (q *queue) DoAndWait(ctx context.Context, change Change) error {
	round, err := q.offerChange(ctx, change)
	if err != nil {
		return err
	}
	return q.waitForRound(ctx, round, &q.done)
}

// WaitCleared returns when the planes hold the plan with all changes from before the call, and nothing of previous
// plans is left, no connection that was made by them either.
func (q *queue) WaitCleared(ctx context.Context) error {
	round, err := q.offerChange(ctx, func(*world.World) {})
	if err != nil {
		return err
	}
	return q.waitForRound(ctx, round, &q.cleared)
}

// waitForRound returns when a count of rounds has reached one.
func (q *queue) waitForRound(ctx context.Context, round uint64, count *uint64) error {
	for {
		q.mu.Lock()
		done, passed := *count, q.passed
		q.mu.Unlock()
		if done >= round {
			return nil
		}
		select {
		case <-passed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Ask runs question in the loop and waits for it.
func (q *queue) Ask(ctx context.Context, question func(*world.World)) error {
	return q.Turn(ctx, func(w *world.World) {
		question(w)
	})
}

// Turn has change made in the loop and waits until that is so. A caller that brings one change after the other by it
// never has more than one in the queue.
func (q *queue) Turn(ctx context.Context, change Change) error {
	made := make(chan struct{})
	err := q.Offer(ctx, func(w *world.World) {
		defer close(made)
		change(w)
	})
	if err != nil {
		return err
	}
	select {
	case <-made:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Synced tells that the whole cluster is known: from here on targets are shrunk as well as grown.
func (q *queue) Synced() {
	q.mu.Lock()
	q.synced = true
	q.mu.Unlock()
	q.Wake()
}

// Reread makes the next round read the targets again.
func (q *queue) Reread() {
	q.mu.Lock()
	q.reread = true
	q.mu.Unlock()
	q.Wake()
}

// Wake asks for a round that looks at the targets.
func (q *queue) Wake() {
	q.lookAtAll()
	q.wakeUp()
}

// lookAtAll makes the next round look at the targets.
func (q *queue) lookAtAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.apply = true
}

// Look asks for a round that looks at the targets of these tables.
func (q *queue) Look(tables plan.Tables) {
	q.mu.Lock()
	q.look |= tables
	q.mu.Unlock()
	q.wakeUp()
}

// Again asks for a round, in which whoever waits for what rounds tell looks again.
func (q *queue) Again() { q.wakeUp() }

// Confirmed reports that the rows of planes have taken effect, and ends the waits for that.
func (q *queue) Confirmed() { q.wakeUp() }

func (q *queue) wakeUp() {
	plane.SignalOnce(q.wake)
}

// round is what one round has to do.
type round struct {
	number        uint64
	changes       []Change
	look          plan.Tables
	apply, synced bool
}

// takeAll begins a round: whatever is pending now is in it.
func (q *queue) takeAll() (r round, reread bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.round++
	r = round{number: q.round, changes: q.pending, look: q.look, apply: q.apply, synced: q.synced}
	if len(q.pending) >= mostPending {
		close(q.room)
		q.room = make(chan struct{})
	}
	reread = q.reread
	q.pending, q.look, q.apply, q.reread = nil, 0, false, false
	return r, reread
}

// finishRound ends the wait for a round, of which the planes hold all; cleared: and nothing of former plans.
func (q *queue) finishRound(round uint64, cleared bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done = round; cleared {
		q.cleared = round
	}
	close(q.passed)
	q.passed = make(chan struct{})
}
