package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

const (
	// compareTimeout bounds one reading of one target, so that an answer names the one that hangs.
	compareTimeout = 8 * time.Second
	// mostReadings is how often a target is read whose part of the plan moves meanwhile.
	mostReadings = 3
)

// snapshot is a copy of the plan, with the moment at which it was the plan.
type snapshot struct {
	state *plan.State
	at    plan.Moment
}

// Differences is part of inspect.Agent. The loop gives copies of its plan and goes on: a target that hangs holds up
// nobody but who asked.
func (x *inspector) Differences(ctx context.Context, object string) (string, error) {
	var of ref.Object
	var now snapshot
	_, err := x.inLoop(ctx, func(w *world.World, m *compile.Memo) (_ string, err error) {
		now = snapshotOf(m)
		of, err = parseObject(object, w.ObjectKinds())
		return "", err
	})
	if err != nil {
		return "", err
	}
	var all []plane.Difference
	var unsteady []string
	for _, c := range x.comparers {
		list, then, err := x.compareTarget(ctx, c, now)
		if err != nil {
			return "", err
		}
		if then.moved {
			unsteady = append(unsteady, c.Name())
		}
		all, now = append(all, list...), then.snapshot
	}
	slices.SortFunc(all, plane.Difference.Compare)
	return differencesOf(slices.Compact(all), of) + movedWhile(unsteady), nil
}

func snapshotOf(m *compile.Memo) snapshot { return snapshot{m.State.Snapshot(), m.State.Now()} }

// later is the plan after some readings of a target. moved says that it was another before and after each of them.
type later struct {
	snapshot
	moved bool
}

// compareTarget reads a target until the plan is the same before and after: the target, and not the plan, then causes
// the differences. Where the plan does not rest, what was found each time is left.
func (x *inspector) compareTarget(ctx context.Context, c plane.Comparer, now snapshot,
) ([]plane.Difference, later, error) {
	var found []plane.Difference
	for reading := range mostReadings {
		list, err := x.readTarget(ctx, c, now.state)
		if err != nil {
			return nil, later{}, err
		}
		then, err := x.currentSnapshot(ctx, now)
		if err != nil || then.at == now.at {
			return list, later{then, false}, err
		}
		if reading > 0 {
			list = slices.DeleteFunc(list, func(d plane.Difference) bool { return !slices.Contains(found, d) })
		}
		found, now = list, then
	}
	return found, later{now, true}, nil
}

// currentSnapshot is the plan as it is now: the same copy, if it has not changed.
func (x *inspector) currentSnapshot(ctx context.Context, last snapshot) (snapshot, error) {
	_, err := x.inLoop(ctx, func(_ *world.World, m *compile.Memo) (string, error) {
		if m.State.Now() != last.at {
			last = snapshotOf(m)
		}
		return "", nil
	})
	return last, err
}

// readTarget asks one target. It waits no longer than compareTimeout, whatever the target does; until that has answered
// after all, nobody asks another question that would wait for it, too.
func (x *inspector) readTarget(ctx context.Context, c plane.Comparer, want *plan.State) ([]plane.Difference, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, compareTimeout, errLateTarget)
	defer cancel()
	select {
	case x.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, noAnswerError(c, context.Cause(ctx))
	}
	type answer struct {
		list []plane.Difference
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-x.reading }()
		list, err := c.Compare(ctx, want)
		answers <- answer{list, err}
	}()
	select {
	case got := <-answers:
		if got.err != nil {
			return nil, noAnswerError(c, got.err)
		}
		return got.list, nil
	case <-ctx.Done():
		return nil, noAnswerError(c, context.Cause(ctx))
	}
}

var errLateTarget = errors.New("it did not answer within " + compareTimeout.String())

// noAnswerError says what to do when a target gives no answer.
func noAnswerError(c plane.Comparer, why error) error {
	return fmt.Errorf("target %s could not be read: see whether the EgressNode of this node names a process that does "+
		"not answer (kubectl get egressnode -o yaml), and the agent's log; then ask again: %w", c.Name(), why)
}

// movedWhile tells of targets that were never read while the plan was at rest.
func movedWhile(targets []string) string {
	if len(targets) == 0 {
		return ""
	}
	return fmt.Sprintf("the plan changed during each of %d readings of %s: of these only what was found every time is "+
		"listed; ask again for the rest\n", mostReadings, strings.Join(targets, ", "))
}

// differencesOf are those that concern one object, or all. A target does not tell for whom a row was that nobody wants:
// of an object such rows are counted.
func differencesOf(all []plane.Difference, object ref.Object) string {
	var out strings.Builder
	nobodys := 0
	for _, d := range all {
		switch {
		case object == (ref.Object{}) || d.Owner.Object == object:
			fmt.Fprintln(&out, d)
		case !d.Missing:
			nobodys++
		}
	}
	if nobodys > 0 {
		fmt.Fprintf(&out, "unwanted rows, of which nothing tells whose they were: %d "+
			"(egret-node plan --diff without --owner prints them)\n", nobodys)
	}
	return out.String()
}
