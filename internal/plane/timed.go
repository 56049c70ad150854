package plane

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/plan"
)

// Took is told how long a step, "grow" or "shrink", of a plane took, and its error.
type Took func(plane, step string, took time.Duration, err error)

// Timed are planes that tell of each call, and are otherwise the same.
func Timed(planes []Plane, took Took) []Plane {
	out := make([]Plane, len(planes))
	for i, p := range planes {
		out[i] = timed{p, took}
		if m, says := p.(member); says {
			m.Plane = timed{m.Plane, took}
			out[i] = m
		}
	}
	return out
}

type timed struct {
	Plane
	took Took
}

func (t timed) Grow(ctx context.Context, want *plan.State) error {
	return t.timeCall("grow", func() error { return t.Plane.Grow(ctx, want) })
}

func (t timed) Shrink(ctx context.Context, want *plan.State) error {
	return t.timeCall("shrink", func() error { return t.Plane.Shrink(ctx, want) })
}

func (t timed) timeCall(step string, do func() error) error {
	start := time.Now()
	err := do()
	t.took(t.Name(), step, time.Since(start), err)
	return err
}
