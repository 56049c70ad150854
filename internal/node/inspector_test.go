package node

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

var outside = netip.MustParseAddr("203.0.113.7")

// inspected is node n1 with a pod of its own; e0, which node n2 holds by its own word, serves it.
func inspected() (*world.World, *world.Pod) {
	w := compiletest.Small("n1", world.SharedGateway)
	p := compiletest.Pod(1, "n1")
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	h := &world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{e.Name: e.IPs}}
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n2", IP: ip})
	}
	e.InForce = [2]bool{true, true}
	w.SetNamespace(&world.Namespace{Name: p.Namespace, Labels: map[string]string{"env": "0"}})
	w.SetPod(p)
	w.SetAttachment(compiletest.Attachment(p))
	w.SetEgressIP(e)
	w.SetHolding(h)
	return w, p
}

// TestTrace: a packet is followed to the node that holds the egress IP, by what this node knows of that one.
func TestTrace(t *testing.T) {
	w, p := inspected()
	own := compile.Full(w, all.Features())
	text, err := tracePacket(all.ServedKinds(), w, own, nil, p.Key(), trace.Packet{Dst: outside, Proto: "tcp",
		DstPort: 80})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"outside by n2 as " + compiletest.EgressAddr(0)[0].String() + "\n",
		"  n1: policy 100 egressip/e0/v4: reroute\n", "  n2: NAT egressip/e0/",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	to := compiletest.EgressAddr(1)[1] // of IPv6
	if text, err = tracePacket(all.ServedKinds(), w, own, nil, p.Key(), trace.Packet{Dst: to, Proto: "udp",
		DstPort: 53}); err != nil ||
		!strings.Contains(text, "outside by n2 as "+compiletest.EgressAddr(0)[1].String()+"\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestTraceToAnotherNodesPod: what attaches another node's pod is not known here, but its addresses are.
func TestTraceToAnotherNodesPod(t *testing.T) {
	w, p := inspected()
	other := compiletest.Pod(2, "n2")
	w.SetPod(other)
	own := compile.Full(w, all.Features())
	for i, ip := range other.IPs {
		text, err := tracePacket(all.ServedKinds(), w, own, nil, p.Key(), trace.Packet{Dst: ip, Proto: "tcp",
			DstPort: 80})
		if want := "\npod " + ip.String() + " at n2 as " + p.IPs[i].String() + "\n"; err != nil ||
			!strings.Contains(text, want) {
			t.Errorf("%v, want %q in\n%s", err, want, text)
		}
	}
}

// TestTraceGuessesNothing: a row that the tracer does not know is named, and nothing is said of where packets go.
func TestTraceGuessesNothing(t *testing.T) {
	w, p := inspected()
	own := compile.Full(w, all.Features())
	own.NB.Put(plan.Owner{}, plan.RowID{Table: "Mirror", Name: "x"}, plan.Row{})
	text, err := tracePacket(all.ServedKinds(), w, own, nil, p.Key(), trace.Packet{Dst: outside, Proto: "tcp",
		DstPort: 80})
	for _, want := range []string{"no trace: ", "please report this", "the plan of n1: nb Mirror/x"} {
		if text != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v; want %q", text, err, want)
		}
	}
}

func TestTraceRefuses(t *testing.T) {
	w, p := inspected()
	w.SetPod(compiletest.Pod(2, "n2"))
	host := *compiletest.Pod(3, "n1")
	host.HostNetwork = true
	w.SetPod(&host)
	starting := compiletest.Pod(4, "n1")
	w.SetPod(starting)
	for key, want := range map[string]string{
		"web": "write NAMESPACE/NAME", "shop/none": "no pod shop/none is known",
		compiletest.Pod(2, "n2").Key(): "runs on n2: run this there", host.Key(): "host's network",
		starting.Key(): "no port on this node",
	} {
		_, err := tracePacket(all.ServedKinds(), w, plan.New(), nil, key, trace.Packet{Dst: outside, Proto: "tcp"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
	only := *p
	only.IPs = p.IPs[:1]
	w.SetPod(&only)
	_, err := tracePacket(all.ServedKinds(), w, plan.New(), nil, p.Key(),
		trace.Packet{Dst: compiletest.EgressAddr(0)[1], Proto: "tcp"})
	if err == nil || !strings.Contains(err.Error(), "no address of the family") {
		t.Errorf("IPv6 from an IPv4 pod: %v", err)
	}
}

// lacking is a target that lacks one row of e0, and has one that nobody wants.
type lacking struct{}

func (lacking) Name() string { return "lacking" }

func (lacking) Compare(context.Context, *plan.State) ([]plane.Difference, error) {
	return []plane.Difference{
		{Plane: "nb", Row: "NAT x"},
		{Plane: "flow", Row: "priority=105", Owner: ownerE0, Missing: true},
		// as one that is deleted and added
		{Plane: "flow", Row: "priority=105", Owner: ownerE0, Missing: true},
	}, nil
}

// nobodys is what is said of the row that nobody wants where one object is asked for.
const nobodys = "unwanted rows, of which nothing tells whose they were: 1 " +
	"(egret-node plan --diff without --owner prints them)\n"

// startInspected runs the loop of an agent that knows w, and has no targets but what comparers say.
func startInspected(t *testing.T, w *world.World, comparers ...plane.Comparer) *Agent {
	a := newAgent("n1", w.Config, all.ServedKinds(), slog.New(slog.DiscardHandler))
	a.loop.world, a.inspector.comparers = w, comparers
	a.holding.withFakes(listen.NewFake())
	a.loop.memo.Update(w)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.loop.RunRounds(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return a
}

func TestPlanAndDifferences(t *testing.T) {
	w, p := inspected()
	a := startInspected(t, w, lacking{})
	ctx := t.Context()

	whole, err := a.inspector.Plan(ctx, "")
	if err != nil || whole != compile.Full(w, all.Features()).Text() {
		t.Errorf("the plan is not the compile of the world: %v", err)
	}
	lines := strings.Split(whole, "\n")
	for _, object := range []string{"egressip/e0", "EgressIP/e0", "pod/" + p.Key()} {
		part, err := a.inspector.Plan(ctx, object)
		if err != nil || !strings.Contains(part, "egressip/e0") {
			t.Errorf("%s: %v\n%s", object, err, part)
		}
		for l := range strings.Lines(part) {
			if !slices.Contains(lines, strings.TrimSpace(l)) {
				t.Errorf("%s has a line that the plan has not: %s", object, l)
			}
		}
	}
	if _, err := a.inspector.Plan(ctx, "egressip/none"); err == nil ||
		!strings.Contains(err.Error(), "no row of this node") {
		t.Errorf("no such object: %v", err)
	}
	for _, text := range []string{"egressip", "egressip/", "lamp/hall"} {
		if _, err := a.inspector.Plan(ctx, text); err == nil || !strings.Contains(err.Error(), "names no object") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for object, want := range map[string]string{
		"":            "flow missing: priority=105 (of egressip/e0)\nnb unwanted: NAT x\n",
		"egressip/e0": "flow missing: priority=105 (of egressip/e0)\n" + nobodys, "egressip/e1": nobodys,
	} {
		if text, err := a.inspector.Differences(ctx, object); err != nil || text != want {
			t.Errorf("differences of %q: %q, %v; want %q", object, text, err, want)
		}
	}
}
