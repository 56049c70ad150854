package node

import (
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestIneffective: an EgressIP under which a pod came while OVN does not answer has a problem, and no other object.
func TestIneffective(t *testing.T) {
	w, s := compiletest.Small("n1", world.SharedGateway), plan.New()
	comes := func(object ref.Object, ip string) {
		s.Replace(plan.Owner{Feature: "f", Object: object}, &plan.Rows{},
			&plan.Rows{SetElems: map[plan.SetElem]plan.None{{Set: "s", Addr: ip}: {}}})
	}
	silent := []string{"process/ovn-controller: does not answer"}
	var r reporting
	objects := func(silent []string) (all []string) {
		for _, p := range r.ineffectiveProblems(s, silent) {
			all = append(all, p.Object.Kind+"/"+p.Object.Key()+" "+p.Reason)
		}
		return all
	}
	say := func(when string, silent []string, want ...string) {
		t.Helper()
		if got := objects(silent); len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: problems of %q, want %q", when, got, want)
		}
	}
	comes(ref.Of(ref.EgressIP, "before"), "10.244.0.3")
	say("before all was once in OVS", silent)
	r.composeNext(w, w.Node("n1"), Outcome{State: s, Shrunk: true}, true, "boot-n1")
	say("all is in OVS", silent)
	comes(ref.Of(ref.EgressIP, "e"), "10.244.0.4")
	comes(ref.Of(ref.Node, "n1"), "10.244.0.5")
	r.composeNext(w, w.Node("n1"), Outcome{State: s, Unconfirmed: true}, false, "boot-n1")
	say("OVN answers, a moment later", nil)
	say("OVN does not answer", silent, "EgressIP/e NoAnswer")
	r.composeNext(w, w.Node("n1"), Outcome{State: s, Shrunk: true}, true, "boot-n1")
	say("OVN has gone on", silent)
}
