package node

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// hosting is the plan of n1 with EgressIP e0 assigned to it.
func hosting() Outcome {
	w := compiletest.Small("n1", world.SharedGateway)
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n1", IP: ip})
	}
	w.SetEgressIP(e)
	return Outcome{State: compile.Full(w, all.Features())}
}

// ownerE0 owns what a holder of e0 has.
var ownerE0 = plan.Owner{Feature: egressip.Hosts{}.Name(), Object: ref.Of(ref.EgressIP, "e0")}

func TestReport(t *testing.T) {
	ips := compiletest.EgressAddr(0)
	type held = map[world.EgressAddress]ref.Since
	gone := held{{Object: "gone", IP: netip.MustParseAddr("172.18.0.9")}: 0}
	one := held{{Object: "e0", IP: ips[0]}: 0}
	both := held{{Object: "e0", IP: ips[0]}: 0, {Object: "e0", IP: ips[1]}: 0}
	refused := hosting()
	refused.Refused = []*plane.Refused{{
		Plane: "nb", Owner: ownerE0, Row: "NAT/x", Err: errors.New("no")}}
	inNetwork, blue := hosting(), plan.Owner{Feature: "blue", Object: ownerE0.Object}
	inNetwork.State.Translated.Put(blue, plan.Egress{Object: ownerE0.Object, Network: "blue", IP: ips[0]}, 0)
	inNetwork.Refused = []*plane.Refused{{Plane: "nb", Owner: blue, Row: "NAT/x", Err: errors.New("no")}}
	other := held{{Object: "e0", IP: ips[1]}: 0}
	failed := hosting()
	failed.Err = errors.New("the database is away")
	for _, x := range []struct {
		name      string
		before    held
		outcome   Outcome
		confirmed bool
		want      held
	}{
		{"in OVS", nil, hosting(), true, both},
		{"not in OVS yet", nil, hosting(), false, nil},
		{"not in OVS yet, one of them is", one, hosting(), false, one},
		{"no longer planned", gone, hosting(), true, both},
		{"refused", both, refused, true, nil},
		{"refused in another network", both, inNetwork, true, other},
		{"a target is away", one, failed, true, one},
	} {
		t.Run(x.name, func(t *testing.T) {
			got := composeReport("n1", "uid", Report{Holding: x.before}, x.outcome, x.confirmed)
			if !maps.Equal(got.Holding, x.want) {
				t.Errorf("holds %v, want %v", got.Holding, x.want)
			}
			if troubled := x.outcome.Err != nil || x.outcome.Refused != nil; troubled != (len(got.Problems) > 0) {
				t.Errorf("problems: %q", got.Problems)
			}
		})
	}
}

// TestReportNamesUIDs: a report has the UID of the object that an address was given to, also when another object has
// its name by now; and a later process of the agent repeats it.
func TestReportNamesUIDs(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)[0])
	i := world.Assignment{Node: "n1", IP: e.IPs[0]}
	at := world.EgressAddress{Object: "e0", IP: i.IP}
	e.UID, e.Items, e.Given = "1111-1", []world.Assignment{i}, []world.Given{{Assignment: i, Since: 5}}
	e.InForce[world.V4] = true
	var r reporting
	round := func(o Outcome) string {
		r.composeNext(w, w.Node("n1"), o, true, "boot-n1")
		return r.last.holdingOf("n1", "boot-n1").HeldUID[at]
	}
	w.SetEgressIP(e)
	held := Outcome{State: compile.Full(w, all.Features()), Shrunk: true}
	if uid := round(held); uid != "1111" {
		t.Errorf("held for %q", uid)
	}
	second := *e
	second.UID, second.Items, second.Given, second.InForce = "2222-2", nil, nil, [2]bool{}
	w.SetEgressIP(&second)
	left := Outcome{State: compile.Full(w, all.Features())}
	if uid := round(left); uid != "1111" {
		t.Errorf("rows of the former object are left, held for %q", uid)
	}
	w.SetHolding(r.last.holdingOf("n1", "boot-n1"))
	r = reporting{}
	if uid := round(left); uid != "1111" {
		t.Errorf("a later process: held for %q", uid)
	}
	if uid := round(Outcome{State: left.State, Shrunk: true}); uid != "" {
		t.Errorf("nothing is left, held for %q", uid)
	}
}

// TestReportRepeatsTheGiving: since when an address was given to a holder is repeated of what the node does by it: at
// once where all is in OVS, whether or not the node saw that it was taken away meanwhile; until then as it was before.
func TestReportRepeatsTheGiving(t *testing.T) {
	given := func(held, steered ref.Since) Outcome {
		w := compiletest.Small("n1", world.SharedGateway)
		e, p := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)[:1]...), compiletest.Pod(0, "n1")
		i := world.Assignment{Node: "n1", IP: e.IPs[0]}
		e.Items, e.Given = []world.Assignment{i}, []world.Given{{Assignment: i, Since: held}}
		e.InForce[world.V4] = true
		w.SetNamespace(&world.Namespace{Name: p.Namespace})
		w.SetPod(p)
		w.SetEgressIP(e)
		own := &world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{"e0": e.IPs}}
		own.SayHeld("e0", e.IPs[0], steered)
		w.SetHolding(own)
		return Outcome{State: compile.Full(w, all.Features())}
	}
	said := func(r Report) string {
		back := adoptedReport(r.holdingOf("n1", "boot-n1")) // as the next process of this boot reads it
		if !maps.Equal(back.Holding, r.Holding) || !slices.Equal(back.Steers, r.Steers) {
			t.Errorf("%+v is read as %+v", r, back)
		}
		var out []string
		for _, since := range r.Holding {
			out = append(out, fmt.Sprint("holds ", int(since)))
		}
		for _, s := range r.Steers {
			does := fmt.Sprint("steers ", int(s.Since))
			if s.Node == "" {
				does = "drops"
			}
			out = append(out, does)
		}
		return strings.Join(out, ", ")
	}
	r := Report{}
	for _, x := range []struct {
		name      string
		outcome   Outcome
		confirmed bool
		want      string
	}{
		{"not in OVS", given(5, 0), false, ""},
		{"in OVS", given(5, 5), true, "holds 5, steers 5"},
		{"given anew, not in OVS", given(7, 5), false, "holds 5, steers 5"},
		{"given anew, its own word is of the former", given(7, 5), true, "holds 7, drops"},
		{"given anew", given(7, 7), true, "holds 7, steers 7"},
		{"taken away", Outcome{State: plan.New()}, true, ""},
		{"given back, not in OVS", given(9, 0), false, ""},
	} {
		if r = composeReport("n1", "uid", r, x.outcome, x.confirmed); said(r) != x.want {
			t.Errorf("%s: %q, want %q", x.name, said(r), x.want)
		}
	}
}

func egressOf(egressIP string, ip netip.Addr) plan.Egress {
	return plan.Egress{Object: ref.Object{Kind: ref.EgressIP, Name: egressIP}, Network: ref.DefaultNetwork, IP: ip}
}

// TestRefusedOfPods: what is refused of a pod's rows is a problem of its EgressIP, and the node goes on holding that
// for others.
func TestRefusedOfPods(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	e, p := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)[:1]...), compiletest.Pod(0, "n1")
	e.Items, e.InForce[world.V4] = []world.Assignment{{Node: "n1", IP: e.IPs[0]}}, true
	w.SetNamespace(&world.Namespace{Name: p.Namespace})
	w.SetPod(p)
	w.SetEgressIP(e)
	w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{"e0": e.IPs}})
	state, target := compile.Full(w, all.Features()), ovn.NewFake()
	target.Refuse = func(id plan.RowID, _ plan.Row) error {
		if id.Name == "egressip/e0/v4" {
			return errors.New("no such column")
		}
		return nil
	}
	refused := plane.Refusals(target.Grow(t.Context(), state))
	got := composeReport("n1", "uid", Report{}, Outcome{State: state, Refused: refused}, true)
	want := []string{"egressip/e0: nb refused Logical_Router_Policy/egressip/e0/v4: no such column"}
	if !slices.Equal(texts(got.Problems), want) {
		t.Errorf("problems %q, want %q", got.Problems, want)
	}
	held := map[world.EgressAddress]ref.Since{{Object: "e0", IP: e.IPs[0]}: 0}
	if !maps.Equal(got.Holding, held) || len(got.Steers) > 0 {
		t.Errorf("holds %v, want %v; leads its pods to %v", got.Holding, held, got.Steers)
	}
	former := Report{Steers: []plan.Steered{
		{Egress: egressOf("e0", e.IPs[0]), Node: "n2"}, {Egress: egressOf("gone", e.IPs[0]), Node: "n2"},
	}}
	got = composeReport("n1", "uid", former, Outcome{State: state, Refused: refused}, true)
	if want := former.Steers[:1]; !slices.Equal(got.Steers, want) {
		t.Errorf("its former row stands: leads its pods to %v, want %v", got.Steers, want)
	}
}

// TestUnserved: an EgressIP that selects pods of another network than it serves has a problem there.
func TestUnserved(t *testing.T) {
	state, rows := plan.New(), plan.Rows{}
	object := ref.Object{Kind: ref.EgressIP, Name: "e0"}
	plan.Add(&rows.Problems, plan.Problem{Object: object, Reason: world.ReasonUnserved,
		Message: "their primary network is blue"}, plan.None{})
	state.Replace(plan.Owner{Feature: "pod"}, &plan.Rows{}, &rows)
	got := composeReport("n1", "uid", Report{}, Outcome{State: state}, true).Problems
	if len(got) != 1 || got[0].Object != object || got[0].Reason != world.ReasonUnserved ||
		!strings.Contains(got[0].Message, "primary network is blue") {
		t.Errorf("problems %q", got)
	}
}

// texts are problems as the old field of EgressNode has them.
func texts(problems []world.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// TestStanding: an address that a node is given no longer is one that it holds until its targets hold nothing of former
// plans, be it that they cannot be written: it goes on translating to it. What the status still names is none of these.
func TestStanding(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	ips := compiletest.EgressAddr(0)
	e := compiletest.EgressIP(0, "", ips...)
	e.Items = []world.Assignment{{Node: "n1", IP: ips[0]}, {Node: "n2", IP: ips[1]}}
	w.SetEgressIP(e)
	named, given := world.EgressAddress{Object: "e0", IP: ips[0]}, world.EgressAddress{Object: "e0", IP: ips[1]}
	gone := world.EgressAddress{Object: "gone", IP: netip.MustParseAddr("172.18.0.9")}
	type held = map[world.EgressAddress]ref.Since
	before := held{named: 1, given: 2, gone: 3}
	for name, x := range map[string]struct {
		outcome Outcome
		want    held
	}{
		"grown":    {Outcome{State: plan.New()}, held{given: 2, gone: 3}},
		"failed":   {Outcome{State: plan.New(), Err: errors.New("the database is away")}, held{given: 2, gone: 3}},
		"shrunk":   {Outcome{State: plan.New(), Shrunk: true}, nil},
		"replaced": {hosting(), held{gone: 3}},
	} {
		if got := unassignedHeld(w, "n1", before, x.outcome); !maps.Equal(got, x.want) {
			t.Errorf("%s: %v stand, want %v", name, got, x.want)
		}
	}
}

// TestMayHold: what a plan asked for stands in the targets, confirmed or not, until nothing of former plans is left.
func TestMayHold(t *testing.T) {
	asked := slices.Collect(maps.Keys(plannedAddresses(hosting())))
	if len(asked) == 0 {
		t.Fatal("nothing is planned")
	}
	held := mayHold(nil, Outcome{State: hosting().State, Unconfirmed: true})
	held = mayHold(held, Outcome{State: plan.New()})
	for _, a := range asked {
		if _, is := held[a]; !is {
			t.Errorf("%v is forgotten before the targets have shrunk", a)
		}
	}
	if held = mayHold(held, Outcome{State: plan.New(), Shrunk: true}); len(held) > 0 {
		t.Errorf("%v may be held when nothing is left", held)
	}
}

// TestReportConcernsOthers: other nodes follow a report if its node holds anything, or can be given it.
func TestReportConcernsOthers(t *testing.T) {
	held := map[world.EgressAddress]ref.Since{{Object: "ns/s", IP: netip.MustParseAddr("172.18.0.33")}: 0}
	for name, c := range map[string]struct {
		report Report
		want   int32
	}{
		"nothing":        {Report{}, egretv1.FormatForControllers},
		"leads its pods": {Report{Steers: []plan.Steered{{Node: "n2"}}}, egretv1.FormatForControllers},
		"can be given":   {Report{Egress: true}, egretv1.FormatVersion},
		"holds":          {Report{Holding: held}, egretv1.FormatVersion},
	} {
		if have := c.report.egressNode("n1", "boot", "devel").Status.FormatVersion; have != c.want {
			t.Errorf("%s: %d, want %d", name, have, c.want)
		}
	}
}
