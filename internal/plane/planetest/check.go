package planetest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

func (r *Rig) countWrites() int {
	if r.Writes == nil {
		return 0
	}
	return r.Writes()
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

func mustApply(t *testing.T, p plane.Plane, s *plan.State) {
	t.Helper()
	if err := plane.Apply(testContext(t), []plane.Plane{p}, s); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

// applyUntilDone applies until it succeeds: a target that has just come back may need a moment.
func applyUntilDone(t *testing.T, p plane.Plane, s *plan.State) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := plane.Apply(testContext(t), []plane.Plane{p}, s)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still failing after the failure is over: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func wantDump(t *testing.T, r *Rig, s *plan.State) {
	t.Helper()
	if have, want := r.Dump(t), r.Text(s); have != want {
		t.Fatalf("the target holds\n%s\nwant\n%s", have, want)
	}
}

// wantLines asserts that the target holds at least s, but for rows that may have gone.
func wantLines(t *testing.T, r *Rig, s *plan.State, mayGo func(line string) bool) {
	t.Helper()
	have := strings.Split(r.Dump(t), "\n")
	for _, l := range strings.Split(r.Text(s), "\n") {
		if !slices.Contains(have, l) && (mayGo == nil || !mayGo(l)) {
			t.Errorf("grown, but %q is missing from\n%s", l, strings.Join(have, "\n"))
		}
	}
}

// rowsWithout returns the rows of a state whose keys another one has not.
func rowsWithout(s, other *plan.State) *plan.State {
	out := plan.New()
	for i := range reflect.TypeFor[plan.State]().NumField() {
		from, without := reflect.ValueOf(s).Elem().Field(i), reflect.ValueOf(other).Elem().Field(i)
		if from.Kind() != reflect.Map || !from.CanInterface() {
			continue
		}
		for _, key := range from.MapKeys() {
			if !without.MapIndex(key).IsValid() {
				reflect.ValueOf(out).Elem().Field(i).SetMapIndex(key, from.MapIndex(key))
			}
		}
	}
	return out
}

func wantForeign(t *testing.T, r *Rig, want string) {
	t.Helper()
	if have := r.DumpForeign(t); have != want {
		t.Fatalf("rows of others were\n%s\nand are now\n%s", want, have)
	}
}
