package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/world"
)

// mute is a target that does not answer before it is let go, whatever the deadline.
type mute struct{ let chan struct{} }

func (mute) Name() string { return "mute" }

func (m mute) Compare(context.Context, *plan.State) ([]plane.Difference, error) {
	<-m.let
	return nil, nil
}

// TestDifferencesOfATargetThatHangs: the loop goes on, the question ends and says what to do, and so does the next one,
// which does not ask the target a second time; when the target answers again, so does the agent.
func TestDifferencesOfATargetThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := inspected()
		m := mute{make(chan struct{})}
		a := startInspected(t, w, m)
		for range 2 {
			start, asked := time.Now(), make(chan error, 1)
			go func() {
				_, err := a.inspector.Differences(t.Context(), "")
				asked <- err
			}()
			synctest.Wait()
			if err := a.loop.Ask(t.Context(), func(*world.World) {}); err != nil || time.Since(start) > 0 {
				t.Errorf("the loop took %v: %v", time.Since(start), err)
			}
			err := <-asked
			for _, want := range []string{"target mute could not be read", "then ask again", "within 8s"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			if took := time.Since(start); took > compareTimeout {
				t.Errorf("the question took %v", took)
			}
		}
		close(m.let)
		if text, err := a.inspector.Differences(t.Context(), ""); text != "" || err != nil {
			t.Errorf("once it answers: %q, %v", text, err)
		}
	})
}

// following is a target that always has what the loop wants by now, but for one row. The plan changes when it begins to
// be read, as often as moves says.
type following struct {
	a        *Agent
	moves    int
	readings int
}

func (*following) Name() string { return "following" }

func (f *following) Compare(ctx context.Context, want *plan.State) ([]plane.Difference, error) {
	if f.readings++; f.readings <= f.moves {
		p := compiletest.Pod(10+f.readings, "n1")
		p.Namespace = compiletest.Pod(1, "n1").Namespace
		err := f.a.loop.Turn(ctx, func(w *world.World) {
			w.SetPod(p)
			w.SetAttachment(compiletest.Attachment(p))
		})
		if err != nil {
			return nil, err
		}
	}
	now, err := f.a.inspector.currentSnapshot(ctx, snapshot{})
	if err != nil {
		return nil, err
	}
	found := []plane.Difference{{Plane: "test", Row: "stray"}}
	for e := range want.SetElems.Rows() {
		if _, is := now.state.SetElems.Get(e); !is {
			found = append(found, plane.Difference{Plane: "test", Row: fmt.Sprint(e), Missing: true})
		}
	}
	for e := range now.state.SetElems.Rows() {
		if _, is := want.SetElems.Get(e); !is {
			found = append(found, plane.Difference{Plane: "test", Row: fmt.Sprint(e)})
		}
	}
	return found, nil
}

// TestDifferencesWhileThePlanMoves: what differs because the plan changed during the reading is not told; what the
// target has wrong is.
func TestDifferencesWhileThePlanMoves(t *testing.T) {
	const stray = "test unwanted: stray\n"
	const moved = "the plan changed during each of 3 readings of following: of these only what was found every time " +
		"is listed; ask again for the rest\n"
	for moves, want := range []struct {
		text     string
		readings int
	}{{stray, 1}, {stray, 2}, {stray, 3}, {stray + moved, 3}} {
		w, _ := inspected()
		f := &following{moves: moves}
		f.a = startInspected(t, w, f)
		text, err := f.a.inspector.Differences(t.Context(), "")
		if err != nil || text != want.text || f.readings != want.readings {
			t.Errorf("%d changes: %d readings, %v\n%swant %d readings\n%s", moves, f.readings, err, text, want.readings,
				want.text)
		}
	}
}
