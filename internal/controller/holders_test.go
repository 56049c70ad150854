package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// reads is an API server that answers lists as it is told.
type reads struct {
	*api
	now func(k kube.Kind) error
}

func (r reads) ReadNow(_ context.Context, k kube.Kind, _ string) error { return r.now(k) }

// TestLeadsWhenHoldersAreRead: who begins to lead, and has not been brought that n1 holds an address for another
// object, does not give it away. It decides nothing until lists have come, and what they have is known then.
func TestLeadsWhenHoldersAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		for i, n := range []string{"n1", "n2"} {
			a.putNode(aNode(n, 2+i))
		}
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		var read []string
		source := reads{a, func(k kube.Kind) error {
			read = append(read, k.Writing().Plural)
			if len(read) < 3 {
				return errors.New("the API server is busy")
			}
			if k.Writing().Plural == "egressnodes" {
				held := map[string][]netip.Addr{"other": {netip.MustParseAddr("172.18.0.33")}}
				a.changes <- func(w *world.World) {
					w.SetHolding(&world.Holding{Node: "n1", BootID: "boot", Holds: held})
				}
			}
			return nil
		}}
		go a.run(t.Context())
		c := controller.New(config(), all.ServedKinds(), source, a, controller.NewMetrics(),
			slog.New(slog.DiscardHandler))
		go c.Run(t.Context())
		begin := time.Now()
		c.Lead(t.Context())
		synctest.Wait()
		took := time.Since(begin)
		want := []string{"egressips", "egressservices", "egressnodes", "nodes", "services", "endpointslices"}
		if took < 400*time.Millisecond || !slices.Equal(read[2:], want) {
			t.Errorf("it led after %s, having read %v", took, read)
		}
		time.Sleep(time.Second)
		if at := a.assigned("e"); at != "" {
			t.Errorf("e is at %s, while n1 holds its address for another object", at)
		}
	})
}
