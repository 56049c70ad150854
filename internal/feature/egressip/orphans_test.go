package egressip_test

import (
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestOrphanBringsItsSet: an agent that starts knows attached pods before it knows its node. What it puts into sets of
// the host must have them.
func TestOrphanBringsItsSet(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.LocalGateway))
	w.SetAttachment(compiletest.Attachment(compiletest.Pod(0, "n1")))
	s := compile.Full(w, all.Features())
	if len(s.NFTElems) == 0 {
		t.Fatal("the orphan is in no set of the host")
	}
	for e := range s.NFTElems.Rows() {
		if _, there := s.NFTSets.Get(plan.NFTSet{Name: e.Set}); !there {
			t.Errorf("%s has an element and is not there", e.Set)
		}
	}
}
