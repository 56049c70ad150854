package world_test

import (
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestViewIsUsedOnce: a view that is used after its Reader has read would record nothing, and panics.
func TestViewIsUsedOnce(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	var kept *world.View
	world.NewReader(func() {}).Read(w, func(v *world.View) {
		v.Nodes()
		kept = v
	})
	defer func() {
		if recover() == nil {
			t.Error("a view can be used after its Reader has read")
		}
	}()
	kept.Nodes()
}

// TestForgottenReadsAreNotTold: a Reader that forgets what it has read hears of no change, and leaves nothing behind.
func TestForgottenReadsAreNotTold(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	told := 0
	r := world.NewReader(func() { told++ })
	r.Read(w, func(v *world.View) { v.Node("n2") })
	w.DelNode("n2")
	if told == 0 {
		t.Error("a Reader does not hear that a node that it has read is gone")
	}
	was := told
	r.ForgetReads()
	w.SetNode(compiletest.Node(2))
	if told != was {
		t.Error("a Reader hears of what it has forgotten")
	}
}

// TestFollowedIsNotRecorded: a Reader hears nothing of the entry that its owner follows.
func TestFollowedIsNotRecorded(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	told := 0
	r := world.NewReader(func() { told++ })
	r.ReadBeside(w, world.Entry{Kind: world.KindNode, Key: "n2"}, func(v *world.View) {
		v.Node("n2")
		v.Node("n1")
	})
	if w.DelNode("n2"); told != 0 {
		t.Error("a Reader hears of the entry that its owner follows")
	}
	if w.DelNode("n1"); told == 0 {
		t.Error("a Reader does not hear that a node that it has read is gone")
	}
}
