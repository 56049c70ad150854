package node

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/world"
)

// Outcome is what became of one round.
type Outcome struct {
	State       *plan.State
	Refused     []*plane.Refused
	Err         error // the errors that stopped planes; nil when only rows were refused
	Left        error // why targets hold what they should not any more, for which nobody waits
	Unconfirmed bool  // the Northbound, or what it holds, has not taken effect yet: nothing that waits for it was done
	Shrunk      bool  // the targets hold nothing of former plans, but for what Left says
	Duration    time.Duration
}

// Loop owns the world. A change is acted on at once; changes of the meantime make the next round. A round that fails is
// repeated, with growing distance; every few minutes all targets are read again. A round does not wait for what it has
// written to take effect: it ends, and Confirmed makes the one that does the rest.
type Loop struct {
	// Planes are all targets, in the order in which a packet meets them last to first. When all are in sync, a change
	// of the plan concerns only those that hold what changed.
	Planes []plane.Plane
	// Early are the planes that are grown before the cluster is known, from local facts alone.
	Early []plane.Plane
	// Grown is told, in the loop, when the targets hold all of a plan and may still hold more. Others do not have to
	// wait for the removal of old rows.
	Grown func(context.Context, *world.World, Outcome)
	// Decide is called in each round, after the pending changes. It may change the world, and returns when to call it
	// again.
	Decide func(*world.World, time.Time) time.Time
	// After is called after each round, in the loop.
	After func(context.Context, *world.World, Outcome)
	// Ran is called after each round that looked at targets.
	Ran func(Outcome)
	Log *slog.Logger

	world *world.World
	memo  *compile.Memo
	now   func() time.Time // of the clock

	*queue
	progress
}

// progress is how far the rounds are with the plan. It is of the loop alone.
type progress struct {
	last       Outcome
	inSync     bool          // the last round left nothing to do
	settled    plan.Moment   // of the plan, when a round last left nothing to do
	owed       plan.Tables   // whose targets are to be looked at, beside those of what changed since
	waiting    bool          // the last round waits for nothing but Confirmed
	awaited    uint64        // the round whose plan that is
	since      time.Time     // and since when it waits
	unfinished bool          // it left something for which nobody need wait
	again      time.Time     // the time of the next Decide
	retry      time.Duration // after the next round that fails
	lastRead   time.Time     // when all targets were read
}

const (
	rereadAll = 4 * time.Minute
	// stillWaiting is how long a round that waits for Confirmed is left alone.
	stillWaiting = 2 * time.Second
)

const allTables = ^plan.Tables(0)

// NewLoop is a loop over w, which it owns from here on.
func NewLoop(w *world.World, features []compile.Feature, log *slog.Logger) *Loop {
	return &Loop{
		Log: log, world: w, memo: compile.NewMemo(features), now: time.Now, queue: newQueue(),
		progress: progress{retry: firstRetry},
		Decide:   func(_ *world.World, now time.Time) time.Time { return now.Add(rereadAll) },
		Grown:    func(context.Context, *world.World, Outcome) {},
		After:    func(context.Context, *world.World, Outcome) {},
		Ran:      func(Outcome) {},
	}
}

// RunRounds runs rounds until ctx ends.
func (l *Loop) RunRounds(ctx context.Context) {
	timer, decide := time.NewTimer(rereadAll), time.NewTimer(rereadAll)
	l.lastRead = l.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-decide.C:
		case <-timer.C:
			l.timeIsUp()
		}
		if pause := l.runTurn(ctx); pause > 0 {
			timer.Reset(pause)
		}
		decide.Reset(l.again.Sub(l.now()))
	}
}

// timeIsUp has the next round look at the targets, unless that only waits for them.
func (l *Loop) timeIsUp() {
	if !l.waiting {
		l.lookAtAll()
	}
}

// runTurn makes one round, and says when time is up for the next; 0: when it was said before, or at once.
func (l *Loop) runTurn(ctx context.Context) time.Duration {
	if l.now().Sub(l.lastRead) > rereadAll {
		l.Reread()
		l.lastRead = l.now()
	}
	switch l.oneRound(ctx); {
	case l.inSync:
		l.retry = firstRetry
		return l.lastRead.Add(rereadAll + time.Second).Sub(l.now())
	case l.unfinished:
		l.Wake()
		return 0
	case l.waiting:
		return stillWaiting
	}
	pause := l.retry
	l.retry = min(2*l.retry, lastRetry)
	return pause
}

// oneRound takes in what is pending, and applies the plan if anything is left to do.
func (l *Loop) oneRound(ctx context.Context) {
	r, reread := l.takeAll()
	if reread { // a plane may be busy with a target that does not answer: nobody else is to wait for that
		for _, p := range l.Planes {
			p.Forget()
		}
	}
	for _, c := range r.changes {
		c(l.world)
	}
	l.again = l.Decide(l.world, l.now())
	// a plan is carried out before it is changed, or it never would be where changes do not end
	if l.waiting && !r.apply && l.now().Sub(l.since) < stillWaiting {
		l.owed |= r.look
		l.runRound(ctx, round{number: l.awaited, synced: r.synced})
		if l.waiting {
			return
		}
	}
	if l.memo.Update(l.world) == 0 && !r.apply && r.look == 0 && l.inSync {
		l.passRound(ctx, r)
		return
	}
	if l.owed |= r.look; r.apply || !l.inSync && !l.waiting {
		l.owed = allTables
	}
	l.runRound(ctx, r)
}

// passRound is a round in which nothing that the plan depends on has changed, as when a kubelet says that it still
// lives.
func (l *Loop) passRound(ctx context.Context, r round) {
	if r.synced {
		l.After(ctx, l.world, l.last)
		l.finishRound(r.number, true)
	}
}

func (l *Loop) runRound(ctx context.Context, r round) {
	start := l.now()
	planes := plane.Concerned(l.Planes, l.owed|l.memo.State.ChangedSince(l.settled))
	err := l.applyPlan(ctx, r.synced, planes)
	l.last = l.outcomeOf(err)
	l.last.Shrunk = r.synced && plane.OnlyRefusals(err) && !errors.Is(err, plane.ErrUnfinished)
	l.last.Duration = l.now().Sub(start)
	if waiting := plane.OnlyUnconfirmed(err); waiting && (!l.waiting || l.awaited != r.number) {
		l.awaited, l.since = r.number, start
	}
	l.inSync, l.waiting, l.unfinished = err == nil, plane.OnlyUnconfirmed(err), errors.Is(err, plane.ErrUnfinished)
	if l.inSync {
		l.owed, l.settled = 0, l.memo.State.Now()
	}
	l.Ran(l.last)
	if (l.last.Err != nil || l.last.Left != nil || len(l.last.Refused) > 0) && !errors.Is(err, context.Canceled) {
		l.Log.Warn("a round did not go through; it will be repeated", "round", r.number, "refused", len(l.last.Refused),
			"first", firstLine(err))
	}
	if r.synced {
		l.After(ctx, l.world, l.last)
		if l.last.Err == nil && !l.last.Unconfirmed {
			l.finishRound(r.number, l.last.Shrunk && !plane.LeavesConnections(err))
		}
	}
}

// firstLine keeps the log short: joined errors have a line each.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (l *Loop) applyPlan(ctx context.Context, synced bool, planes []plane.Plane) error {
	if !synced {
		return plane.Grow(ctx, l.Early, l.memo.State)
	}
	grown := plane.Grow(ctx, planes, l.memo.State)
	if !plane.OnlyRefusals(grown) { // nothing is taken from where packets may still be led
		return errors.Join(grown, plane.Shrink(ctx, plane.TellingOnly(planes), l.memo.State))
	}
	l.Grown(ctx, l.world, l.outcomeOf(grown))
	return errors.Join(grown, plane.Shrink(ctx, planes, l.memo.State))
}

func (l *Loop) outcomeOf(err error) Outcome {
	o := Outcome{State: l.memo.State, Refused: plane.Refusals(err), Unconfirmed: errors.Is(err, plane.ErrUnconfirmed)}
	if !plane.OnlyRefusals(err) && !plane.OnlyUnconfirmed(err) {
		o.Err = err
	}
	if left := (*plane.Leftover)(nil); errors.As(err, &left) {
		o.Left = left
	}
	return o
}
