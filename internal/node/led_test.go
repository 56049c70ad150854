package node

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestFormerLed: pods are led on to the nodes that the EgressNode names, as far as the Northbound's policies led there.
// A restore of etcd can bring back an EgressNode that names another one.
func TestFormerLed(t *testing.T) {
	for what, object := range map[string]struct {
		key   string
		place func(*world.World, *world.Pod) (ip netip.Addr)
	}{
		"an EgressIP": {"e0", func(w *world.World, _ *world.Pod) netip.Addr {
			return placeEgressIP(w, compiletest.EgressAddr(0)[0])
		}},
		"an EgressIP with slots": {"e0", func(w *world.World, _ *world.Pod) netip.Addr {
			return placeEgressIP(w, compiletest.EgressAddr(0)[0], compiletest.EgressAddr(1)[0])
		}},
		"an EgressService": {"ns0/s0", placeEgressService},
	} {
		for said, goesOn := range map[string]bool{"n2": true, "n3": false} {
			w, p := compiletest.Small("n1", world.SharedGateway), compiletest.Pod(0, "n1")
			w.SetNamespace(&world.Namespace{Name: p.Namespace})
			w.SetPod(p)
			w.SetAttachment(compiletest.Attachment(p))
			ip := object.place(w, p)
			holds := map[string][]netip.Addr{object.key: {ip}}
			w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2", Holds: holds})
			led := ledBy(compile.Full(w, all.Features()))

			c := clearing{former: led}
			w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Steers: map[string][]world.Assignment{
				object.key: {{Node: said, IP: ip}}}})
			c.beginMachine(w, "boot-n1")
			c.pastLists = func() bool { return false }
			c.stepMachine(w, time.Now())
			if is := w.Cleared(said); is != goesOn {
				t.Errorf("%s: packets go on to %s: %t; policies led to %v", what, said, is, led.nextHops)
			}
			if !led.leadsTo(w, ref.OfKey(object.key), "n2", world.V4) {
				t.Errorf("%s: policies led to %v, which is not n2", what, led.nextHops)
			}
			if !slices.Contains(led.pods[ledPod{ip: p.IPs[0]}], ref.OfKey(object.key)) {
				t.Errorf("%s: sets say that pods were led by %v", what, led.pods)
			}
		}
	}
}

// TestFormerLedInNetworks: pods of two networks with one address were each led by their own network's rows.
func TestFormerLedInNetworks(t *testing.T) {
	w, ip := compiletest.Small("n1", world.SharedGateway), compiletest.Pod(0, "n1").IPs[0]
	s, hop := plan.New(), w.Config.Transit(w.Node("n2").ID, world.V4).Addr()
	for id, name := range []string{ref.DefaultNetwork, "a_b", "a-b"} {
		if id < 2 { // a-b is gone
			n := *w.Config.DefaultNetwork()
			n.Name, n.ID = name, id
			w.SetNetwork(&n)
		}
		n, e := plan.Names{Network: name, ID: id}, fmt.Sprint("egressip/e", id)
		elem := plan.SetElem{Set: n.Row(e + "/local.v4"), Addr: ip.String()}
		s.SetElems.Put(plan.Owner{}, elem, plan.None{})
		policy := plan.RowID{Table: plan.TablePolicy, Name: n.Row(e + "/v4")}
		s.NB.Put(plan.Owner{}, policy, plan.Row{Cols: plan.Cols{"nexthops": []string{hop.String()}}})
	}
	led := ledBy(s)
	have := led.podsByNumber(w)
	want := map[world.PodAddr][]ref.Object{{IP: ip}: {ref.OfKey("e0")}, {Network: 1, IP: ip}: {ref.OfKey("e1")}}
	if !maps.EqualFunc(have, want, slices.Equal) {
		t.Errorf("have %v, want %v", have, want)
	}
	if !led.leadsTo(w, ref.OfKey("e1"), "n2", world.V4) {
		t.Errorf("policies led to %v, which is not n2", led.nextHops)
	}
}

// ledBy reads a plan as the Northbound has it.
func ledBy(s *plan.State) formerLed {
	var elems []plan.SetElem
	for e := range s.SetElems.Rows() {
		elems = append(elems, e)
	}
	hops := map[plan.RowID][]string{}
	for id, r := range s.NB.Rows() {
		if id.Table == plan.TablePolicy {
			hops[id] = r.Cols["nexthops"].([]string)
		}
	}
	return parseLed(elems, hops)
}

func placeEgressIP(w *world.World, ips ...netip.Addr) netip.Addr {
	e := compiletest.EgressIP(0, "", ips...)
	e.InForce = [2]bool{true}
	for _, ip := range ips {
		e.Items = append(e.Items, world.Assignment{Node: "n2", IP: ip})
	}
	w.SetEgressIP(e)
	return ips[0]
}

func placeEgressService(w *world.World, p *world.Pod) netip.Addr {
	w.SetService(compiletest.LoadBalancer(0, p))
	s := compiletest.EgressService(0)
	ip := compiletest.EgressAddr(20)[0]
	s.Host, s.InForce, s.Items = "n2", [2]bool{true}, []world.Assignment{{Node: "n2", IP: ip}}
	w.SetEgressService(s)
	return ip
}
