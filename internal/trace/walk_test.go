package trace_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// cluster is three nodes, each with its own view of the same objects.
type cluster map[string]*world.World

func newCluster(mode world.GatewayMode) cluster {
	c := cluster{}
	for i := 1; i <= 3; i++ {
		c[fmt.Sprint("n", i)] = compiletest.Small(fmt.Sprint("n", i), mode)
	}
	c.each(func(w *world.World) {
		w.SetNamespace(&world.Namespace{Name: "ns0"})
		w.SetNamespace(&world.Namespace{Name: "ns1"})
		w.SetNamespace(&world.Namespace{Name: "ns2"})
		w.SetService(&world.Service{Namespace: "default", Name: "kubernetes",
			ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
			Ports: []world.ServicePort{{Protocol: "tcp", Port: 443,
				Endpoints: []world.Endpoint{{AddrPort: netip.MustParseAddrPort("172.18.0.250:6443"), Ready: true}}}}})
		w.SetService(&world.Service{Namespace: "ns0", Name: "empty",
			ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.2")},
			Ports:      []world.ServicePort{{Protocol: "tcp", Port: 80}}})
	})
	for i := range 4 {
		c.run(compiletest.Pod(i, fmt.Sprint("n", 1+i%3)))
	}
	return c
}

func (c cluster) each(f func(*world.World)) {
	for _, w := range c {
		f(w)
	}
}

func (c cluster) run(p *world.Pod) {
	c.each(func(w *world.World) {
		w.SetPod(p)
		if w.Self == p.Node {
			w.SetAttachment(compiletest.Attachment(p))
		}
	})
}

// read has the plans read for walking.
func (c cluster) read(t *testing.T) *trace.Cluster {
	t.Helper()
	return read(t, c.plans())
}

func read(t *testing.T, net trace.Network) *trace.Cluster {
	t.Helper()
	r, err := trace.Read(net)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (c cluster) plans() trace.Network {
	n := trace.Network{}
	for name, w := range c {
		n[name] = compile.Full(w, all.Features())
	}
	return n
}

// egressIP assigns 172.18.0.50 to n2 and 172.18.0.51 to n3 for app=web (pods 0 and 2), held by both.
func (c cluster) egressIP(change func(*world.EgressIP), holders ...string) {
	e := compiletest.EgressIP(0, "app=web", compiletest.EgressAddr(0)[0], compiletest.EgressAddr(1)[0])
	e.Items = []world.Assignment{{Node: "n2", IP: e.IPs[0]}, {Node: "n3", IP: e.IPs[1]}}
	if change != nil {
		change(e)
	}
	c.each(func(w *world.World) {
		w.SetEgressIP(e)
		for _, h := range holders {
			w.SetHolding(&world.Holding{Node: h, BootID: "boot-" + h, Holds: map[string][]netip.Addr{"e0": e.IPs}})
		}
	})
}

const (
	pod0 = "10.244.1.10" // app=web on n1
	pod1 = "10.244.2.11" // app=db on n2
	pod2 = "10.244.3.12" // app=web on n3, which is an egress node
)

func TestWalk(t *testing.T) {
	both := []string{"n2", "n3"}
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, x := range []struct {
			name, src, dst string
			reply          bool
			change         func(*world.EgressIP)
			holders        []string
			want           string
		}{
			{"not selected", pod1, "172.18.0.100", false, nil, both, "outside by n2 as 172.18.0.3"},
			{"selected, elsewhere", pod0, "172.18.0.100", false, nil, both,
				"outside by n2 as 172.18.0.50 | outside by n3 as 172.18.0.51"},
			{"selected, on a holder", pod2, "172.18.0.100", false, nil, both,
				"outside by n2 as 172.18.0.50 | outside by n3 as 172.18.0.51"},
			{"one holder ready, for the first time", pod0, "172.18.0.100", false, nil, []string{"n3"},
				"outside by n2 as 172.18.0.50 | outside by n3 as 172.18.0.51"},
			{"in force, one holder ready", pod0, "172.18.0.100", false,
				func(e *world.EgressIP) { e.InForce[world.V4] = true }, []string{"n3"}, "outside by n3 as 172.18.0.51"},
			{"never in force, nobody ready", pod0, "172.18.0.100", false, nil, nil,
				"outside by n2 as 172.18.0.50 | outside by n3 as 172.18.0.51"},
			{"never in force, another was leaving", pod0, "172.18.0.100", false, func(e *world.EgressIP) {
				e.Leaving = []world.Leaving{{Node: "n1", IP: e.IPs[0]}}
			}, nil, "outside by n1 as 172.18.0.2"},
			{"in force, nobody ready", pod0, "172.18.0.100", false,
				func(e *world.EgressIP) { e.InForce[world.V4] = true }, nil, "dropped at n1: policy egressip/e0/v4"},
			{"given up", pod0, "172.18.0.100", false, func(e *world.EgressIP) { e.Items = nil }, nil,
				"outside by n1 as 172.18.0.2"},
			{"to drop when unassigned", pod0, "172.18.0.100", false,
				func(e *world.EgressIP) { e.Items, e.DropWhenUnassigned = nil, true }, nil,
				"dropped at n1: policy egressip/e0/v4"},
			{"moved, successor not ready", pod0, "172.18.0.100", false, func(e *world.EgressIP) {
				e.Items, e.InForce[world.V4] = []world.Assignment{{Node: "n1", IP: e.IPs[0]}}, true
				e.Leaving = []world.Leaving{{Node: "n2", IP: e.IPs[0]}}
			}, []string{"n2"}, "outside by n2 as 172.18.0.50"},
			{"to a pod", pod0, pod1, false, nil, both, "pod 10.244.2.11 at n2 as 10.244.1.10"},
			{"to its own node", pod0, "172.18.0.2", false, nil, both, "host 172.18.0.2 at n1 as 10.244.1.10"},
			{"to another node", pod0, "172.18.0.4", false, nil, both, "host 172.18.0.4 at n3 as 172.18.0.2"},
			{"to another node, from a holder", pod2, "172.18.0.2", false, nil, both,
				"host 172.18.0.2 at n1 as 172.18.0.4"},
			{"to the API server's Service", pod0, "10.96.0.1", false, nil, both, "outside by n1 as 172.18.0.2"},
			{"to a Service without endpoints", pod0, "10.96.0.2", false, nil, both,
				"dropped at n1: rejected: Service_ns0/empty_TCP_cluster has no backends"},
		} {
			t.Run(string(mode)+"/"+x.name, func(t *testing.T) {
				c := newCluster(mode)
				c.egressIP(x.change, x.holders...)
				port := map[string]uint16{"10.96.0.1": 443}[x.dst]
				if port == 0 {
					port = 80
				}
				ends := c.read(t).Walk(trace.Packet{Src: netip.MustParseAddr(x.src),
					Dst: netip.MustParseAddr(x.dst), Proto: "tcp", DstPort: port, Reply: x.reply})
				if got := trace.Sentences(ends); got != x.want {
					t.Errorf("%s to %s: %s\nwant %s\n%v", x.src, x.dst, got, x.want, ends[0].Steps)
				}
			})
		}
	}
}

// TestOrphans: nothing says any more which source is right for a pod whose object is gone, or is another's, while its
// port is still there. It gets no packet outside, selected or not, and still reaches the cluster.
func TestOrphans(t *testing.T) {
	for name, change := range map[string]func(*world.World, *world.Pod){
		"deleted by force": func(w *world.World, p *world.Pod) { w.DelPod(p.Key()) },
		"made anew": func(w *world.World, p *world.Pod) {
			next := *p
			next.UID, next.IPs = "another", nil
			w.SetPod(&next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(world.SharedGateway)
			c.egressIP(nil, "n2", "n3")
			for _, i := range []int{0, 1} {
				p := compiletest.Pod(i, fmt.Sprint("n", 1+i))
				c.each(func(w *world.World) { change(w, p) })
				c.arrives(t, p.IPs[0].String(), "172.18.0.100", "dropped at "+p.Node+": policy egressip-held-back.v4")
				c.arrives(t, p.IPs[0].String(), pod2, "pod 10.244.3.12 at n3 as "+p.IPs[0].String())
			}
		})
	}
}

func (c cluster) arrives(t *testing.T, src, dst, want string) {
	t.Helper()
	ends := c.read(t).Walk(trace.Packet{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst),
		Proto: "tcp", DstPort: 80})
	if got := trace.Sentences(ends); got != want {
		t.Errorf("%s to %s: %s, want %s", src, dst, got, want)
	}
}

// TestReply: what a selected pod answers to a connection from outside takes the way that it came, untouched.
func TestReply(t *testing.T) {
	c := newCluster(world.SharedGateway)
	c.egressIP(nil, "n2", "n3")
	p := trace.Packet{Src: netip.MustParseAddr(pod0), Dst: netip.MustParseAddr("172.18.0.100"), Proto: "tcp",
		SrcPort: 80, DstPort: 40000, Reply: true}
	ends := c.read(t).Walk(p)
	if len(ends) != 1 || ends[0].Node != "n1" {
		t.Errorf("the reply went %s, want it to leave by n1 alone", trace.Sentences(ends))
	}
}
