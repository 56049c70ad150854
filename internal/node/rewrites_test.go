package node

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// TestGarbledAnnotationIsWrittenAnew: what the Node says otherwise than the agent is written anew at once, not more
// than once a second however often the agent looks, and without being asked again; what the Node says rightly is left
// alone.
func TestGarbledAnnotationIsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		a := newAgent("n1", compiletest.Config(world.SharedGateway), slog.New(slog.DiscardHandler))
		writes := 0
		a.annotations = newMailbox("annotations", maps.Equal[map[string]string], func(context.Context,
			map[string]string) error {
			writes++
			return nil
		}, a.log)
		go a.annotations.run(ctx)
		n := compiletest.Node(1)
		own := published("n1", compiletest.Host("n1"), n, a.config)
		garbled := maps.Clone(own)
		garbled["k8s.ovn.org/host-cidrs"] = "garbage"
		look := func(annotations map[string]string, times, want int) {
			t.Helper()
			n.Published = kube.Published(annotations)
			for range times {
				a.publish(n, own)
				synctest.Wait()
			}
			if writes != want {
				t.Errorf("%d writes, want %d", writes, want)
			}
		}
		look(nil, 1, 1)
		time.Sleep(time.Minute)
		look(own, 5, 1)
		look(garbled, 5, 2)
		time.Sleep(rewriteEvery)
		look(garbled, 5, 3)
		look(own, 5, 3)
		time.Sleep(time.Minute)
		look(garbled, 1, 4)
		stop()
	})
}

// TestRewrites: who must wait is told once for how long.
func TestRewrites(t *testing.T) {
	var r rewrites
	start := time.Unix(1000, 0)
	for _, c := range []struct{ at, want time.Duration }{
		{0, 0}, {100 * time.Millisecond, rewriteEvery - 100*time.Millisecond}, {200 * time.Millisecond, -1},
		{rewriteEvery, 0}, {rewriteEvery + 1, rewriteEvery - 1},
	} {
		if have := r.due(start.Add(c.at)); have != c.want {
			t.Errorf("after %v: %v, want %v", c.at, have, c.want)
		}
	}
}
