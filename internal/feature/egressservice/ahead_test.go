package egressservice_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestHostThatDoesNotSayIt: a node leads its pods to a host in force that does not say yet that it holds the address,
// for a second. Then it drops what they send, until the host says so or is another one. One that is not in force, and
// nobody is known to be ready for, is not led to. A pod that starts waits for what the host says.
func TestHostThatDoesNotSayIt(t *testing.T) {
	w, m, now := compiletest.Small("n1", world.SharedGateway), holder.Machine{Self: "n1"}, time.Unix(1_000_000, 0)
	p, ip := compiletest.Pod(0, "n1"), first[:1]
	service := compiletest.LoadBalancer(0, p)
	service.LoadBalancerIPs = ip
	w.SetPod(p)
	w.SetService(service)
	set := func(host string, inForce bool, uid string) func() {
		return func() {
			s := compiletest.EgressService(0)
			s.Host, s.Items, s.InForce[world.V4] = host, []world.Assignment{{Node: host, IP: ip[0]}}, inForce
			s.UID = uid
			w.SetEgressService(s)
		}
	}
	holds := func(node string, ips ...netip.Addr) func() {
		return func() {
			w.SetHolding(&world.Holding{Node: node, BootID: "boot-" + node, Holds: map[string][]netip.Addr{key: ips}})
		}
	}
	const ahead, ready, drop = "reroute [100.88.0.3] ahead, waiting", "reroute [100.88.0.3]", "drop [], waiting"
	for _, x := range []struct {
		what  string
		do    func()
		after time.Duration
		want  string
	}{
		{"not in force", set("n2", false, "a"), 0, "its own, waiting"},
		{"in force", set("n2", true, "a"), 0, ahead},
		{"not yet", func() {}, 900 * time.Millisecond, ahead},
		{"overdue", func() {}, 100 * time.Millisecond, drop},
		{"still", func() {}, time.Hour, drop},
		{"it says so", holds("n2", ip...), 0, ready},
		{"and no more", holds("n2"), 0, ahead},
		{"overdue again", func() {}, time.Second, drop},
		{"another host", set("n3", true, "a"), 0, "reroute [100.88.0.4] ahead, waiting"},
		{"the former", set("n2", true, "a"), 0, ahead},
		{"overdue once more", func() {}, time.Second, drop},
		{"created anew", set("n2", true, "b"), 0, ahead},
	} {
		x.do()
		now = now.Add(x.after)
		for range 2 { // what the first step finds is in the world for the second
			f := holder.Facts{View: &w.View, Holds: holder.HoldsOf(plan.New()),
				Ahead: holder.AheadOf(compile.Full(w, all.Features()))}
			for c, node := range m.Step(f, now).Overdue {
				w.SetOverdue(c, node)
			}
		}
		if have := way(w, p); have != x.want {
			t.Errorf("%s: %s, want %s", x.what, have, x.want)
		}
	}
}

// way is what becomes of a pod's packets over IPv4, and whether it waits if it starts now.
func way(w *world.World, p *world.Pod) string {
	all, out := compile.Full(w, all.Features()), "its own"
	if row, is := all.NB.Get(plan.RowID{Table: "Logical_Router_Policy", Name: "egressservice/" + key + "/v4"}); is {
		out = fmt.Sprint(row.Cols["action"], " ", row.Cols["nexthops"])
	}
	for _, ahead := range all.Steered.Rows() {
		if ahead {
			out += " ahead"
		}
	}
	if egressservice.Waiting(&w.View, p.Key()) != (ref.Object{}) {
		out += ", waiting"
	}
	return out
}
