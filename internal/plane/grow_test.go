package plane_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// slow is a plane that takes its time to grow, and notes when it begins and ends.
type slow struct {
	name  string
	takes time.Duration
	fails error
	log   *journal
}

type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (s slow) Name() string                              { return s.name }
func (s slow) Shrink(context.Context, *plan.State) error { return nil }
func (s slow) Forget()                                   {}

func (s slow) Grow(context.Context, *plan.State) error {
	s.log.note("+" + s.name)
	time.Sleep(s.takes)
	s.log.note("-" + s.name)
	return s.fails
}

var errGrow = errors.New("does not answer")

// growOrder is the order of a node's planes, in small: ports 40 ms, the others 10.
func growOrder(t *testing.T, fails string) (lines []string, took time.Duration, err error) {
	log := &journal{}
	at := func(name string, traits ...plane.Trait) plane.Plane {
		s := slow{name: name, takes: 10 * time.Millisecond, log: log}
		if name == "ports" {
			s.takes = 40 * time.Millisecond
		}
		if name == fails {
			s.fails = errGrow
		}
		return plane.For(plan.InNB, s, traits...)
	}
	start := time.Now()
	err = plane.Grow(t.Context(), []plane.Plane{
		at("ports", plane.After()), at("routes", plane.After(), plane.Following("ports")), at("accepts", plane.After()),
		at("flow", plane.After("ports", "routes")), at("sb", plane.After()), at("nb", plane.After("flow", "sb")),
		at("health", plane.After(), plane.Following("nb")),
	}, plan.New())
	return log.lines, time.Since(start), err
}

// TestGrowsAtOnce: planes that do not wait for each other grow at the same time, and those that do, do.
func TestGrowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, took, err := growOrder(t, "")
		if err != nil || took != 80*time.Millisecond {
			t.Errorf("grown in %s, want the 80 ms of the longest way: %v", took, err)
		}
		before(t, lines, "-ports", "+routes", "-routes", "+flow", "-flow", "+nb", "-nb", "+health")
		before(t, lines, "+sb", "-ports")
		before(t, lines, "+accepts", "-ports")
		before(t, lines, "-sb", "+nb")
	})
}

// TestGrowKeepsBack: a plane that does not grow keeps back those that need it, and none that only follow it.
func TestGrowKeepsBack(t *testing.T) {
	for fails, left := range map[string][]string{
		"ports": {"flow", "nb"}, "routes": {"flow", "nb"}, "flow": {"nb"}, "sb": {"nb"}, "nb": nil, "accepts": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			lines, _, err := growOrder(t, fails)
			if !errors.Is(err, errGrow) || !strings.Contains(err.Error(), "grow "+fails) {
				t.Errorf("where %s does not grow: %v", fails, err)
			}
			for _, name := range []string{"ports", "routes", "accepts", "flow", "sb", "nb", "health"} {
				if slices.Contains(lines, "+"+name) == slices.Contains(left, name) {
					t.Errorf("where %s does not grow, %s does: %v", fails, name, slices.Contains(lines, "+"+name))
				}
			}
			before(t, lines, "-ports", "+routes")
			if !slices.Contains(left, "nb") {
				before(t, lines, "-nb", "+health")
			}
		})
	}
}

// TestPlanesWithoutTraitsGrowInTurn: who says nothing of the order waits for all before it.
func TestPlanesWithoutTraitsGrowInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &journal{}
		var planes []plane.Plane
		for _, name := range []string{"a", "b", "c"} {
			planes = append(planes, slow{name: name, takes: time.Millisecond, log: log})
		}
		err := plane.Grow(t.Context(), planes, plan.New())
		if err != nil || !slices.Equal(log.lines, []string{"+a", "-a", "+b", "-b", "+c", "-c"}) {
			t.Errorf("grown in the order %v: %v", log.lines, err)
		}
	})
}

// before asserts that lines are in this order.
func before(t *testing.T, lines []string, want ...string) {
	t.Helper()
	at := -1
	for _, w := range want {
		i := slices.Index(lines, w)
		if i <= at {
			t.Errorf("%q is not where it should be: %v, want the order %v", w, lines, want)
		}
		at = i
	}
}
