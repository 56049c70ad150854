package node

import (
	"context"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/world"
)

// mostPending is how many changes may wait for a round before those who bring more have to wait, too: a round takes
// seconds while a target is slow.
const mostPending = 4096

// Do has change made in the loop, soon. It never waits: for the loop itself, and for those who have one change at a
// time to bring.
func (l *Loop) Do(change Change) {
	l.mu.Lock()
	l.pending = append(l.pending, change)
	l.mu.Unlock()
	l.wakeUp()
}

// Offer has change made in the loop, soon, and waits for room among those that are to be made. Its error is ctx's; the
// change is not made then.
func (l *Loop) Offer(ctx context.Context, change Change) error {
	_, err := l.offerChange(ctx, change)
	return err
}

// offerChange returns the round that takes the change in.
func (l *Loop) offerChange(ctx context.Context, change Change) (round uint64, err error) {
	for {
		l.mu.Lock()
		room := l.room
		if len(l.pending) < mostPending {
			l.pending = append(l.pending, change)
			round, room = l.round+1, nil // the next round to begin takes it in
		}
		l.mu.Unlock()
		if room == nil {
			l.wakeUp()
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
func (l *Loop) DoAndWait(ctx context.Context, change Change) error {
	round, err := l.offerChange(ctx, change)
	if err != nil {
		return err
	}
	return l.waitForRound(ctx, round, &l.done)
}

// WaitCleared returns when the planes hold the plan with all changes from before the call, and nothing of previous
// plans is left, no connection that was made by them either.
func (l *Loop) WaitCleared(ctx context.Context) error {
	round, err := l.offerChange(ctx, func(*world.World) {})
	if err != nil {
		return err
	}
	return l.waitForRound(ctx, round, &l.cleared)
}

// waitForRound returns when a count of rounds has reached one.
func (l *Loop) waitForRound(ctx context.Context, round uint64, count *uint64) error {
	for {
		l.mu.Lock()
		done, passed := *count, l.passed
		l.mu.Unlock()
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
func (l *Loop) Ask(ctx context.Context, question func(*world.World)) error {
	return l.Turn(ctx, func(w *world.World) {
		question(w)
	})
}

// Turn has change made in the loop and waits until that is so. A caller that brings one change after the other by it
// never has more than one in the queue.
func (l *Loop) Turn(ctx context.Context, change Change) error {
	made := make(chan struct{})
	err := l.Offer(ctx, func(w *world.World) {
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
func (l *Loop) Synced() {
	l.mu.Lock()
	l.synced = true
	l.mu.Unlock()
	l.Wake()
}

// Reread makes the next round read the targets again.
func (l *Loop) Reread() {
	l.mu.Lock()
	l.reread = true
	l.mu.Unlock()
	l.Wake()
}

// Wake asks for a round that looks at the targets.
func (l *Loop) Wake() {
	l.lookAtAll()
	l.wakeUp()
}

// lookAtAll makes the next round look at the targets.
func (l *Loop) lookAtAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply = true
}

// Look asks for a round that looks at the targets of these tables.
func (l *Loop) Look(tables plan.Tables) {
	l.mu.Lock()
	l.look |= tables
	l.mu.Unlock()
	l.wakeUp()
}

// Again asks for a round, in which whoever waits for what rounds tell looks again.
func (l *Loop) Again() { l.wakeUp() }

// Confirmed reports that the rows of planes have taken effect, and ends the waits for that.
func (l *Loop) Confirmed() { l.wakeUp() }

func (l *Loop) wakeUp() {
	plane.SignalOnce(l.wake)
}

// round is what one round has to do.
type round struct {
	number        uint64
	changes       []Change
	look          plan.Tables
	apply, synced bool
}

// takeRound begins a round: whatever is pending now is in it.
func (l *Loop) takeRound() round {
	r, reread := l.takeAll()
	if reread { // a plane may be busy with a target that does not answer: nobody else is to wait for that
		for _, p := range l.Planes {
			p.Forget()
		}
	}
	return r
}

func (l *Loop) takeAll() (r round, reread bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round++
	r = round{number: l.round, changes: l.pending, look: l.look, apply: l.apply, synced: l.synced}
	if len(l.pending) >= mostPending {
		close(l.room)
		l.room = make(chan struct{})
	}
	reread = l.reread
	l.pending, l.look, l.apply, l.reread = nil, 0, false, false
	return r, reread
}

// finishRound ends the wait for a round, of which the planes hold all; cleared: and nothing of former plans.
func (l *Loop) finishRound(round uint64, cleared bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done = round; cleared {
		l.cleared = round
	}
	close(l.passed)
	l.passed = make(chan struct{})
}
