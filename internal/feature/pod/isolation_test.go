package pod_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestIsolation: the port in the default network of a pod with another primary network lets in connections of its node
// to declared probe ports, and all connections to ports that the pod opens. It lets out answers alone.
func TestIsolation(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.244.1.77"), netip.MustParseAddr("fd00:10:244:1::77")}
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		net := trace.Network{}
		for _, node := range []string{"n1", "n2"} {
			w := compiletest.Small(node, mode)
			w.SetNamespace(&world.Namespace{Name: "tenant", OwnNetwork: true})
			w.SetNetwork(&world.Network{Name: "tenant_blue", ID: 1, Namespaces: []string{"tenant"}})
			p := &world.Pod{Namespace: "tenant", Name: "p", UID: "p", Node: "n1", IPs: own, Confirmed: true,
				ProbePorts: []uint16{8080}, OpenPorts: []world.OpenPort{{Protocol: "icmp"},
					{Protocol: "tcp", Port: 9090}, {Protocol: "udp", Port: 53}}}
			for _, p := range []*world.Pod{p, compiletest.Pod(3, "n1"), compiletest.Pod(1, "n2")} {
				w.SetPod(p)
				if p.Node == node {
					w.SetAttachment(compiletest.Attachment(p))
				}
			}
			net[node] = compile.Full(w, all.Features())
		}
		c, err := trace.Read(net)
		if err != nil {
			t.Fatal(err)
		}
		for f := range 2 {
			host := func(node string, p trace.Packet) []trace.End { return c.WalkFromHost(node, p) }
			to := func(proto string, port uint16) trace.Packet {
				return trace.Packet{Dst: own[f], Proto: proto, DstPort: port}
			}
			from := func(number, node int, p trace.Packet) []trace.End {
				p.Src = compiletest.PodIPs(number, node)[f]
				return c.Walk(p)
			}
			sends := func(dst netip.Addr, proto string, src uint16, reply bool) []trace.End {
				return c.Walk(trace.Packet{Src: own[f], Dst: dst, Proto: proto, SrcPort: src, DstPort: 1000,
					Reply: reply})
			}
			other := compiletest.PodIPs(3, 1)[f]
			node := world.Nth(compiletest.Node(1).Subnets[f], 2)
			for what, x := range map[string]struct {
				ends []trace.End
				want string
			}{
				"kubelet's probe":             {host("n1", to("tcp", 8080)), "pod"},
				"host at another port":        {host("n1", to("tcp", 8081)), "dropped"},
				"host, UDP":                   {host("n1", to("udp", 8080)), "dropped"},
				"host at an open port":        {host("n1", to("tcp", 9090)), "pod"},
				"host of another node":        {host("n2", to("tcp", 8080)), "dropped"},
				"host of another node, open":  {host("n2", to("tcp", 9090)), "pod"},
				"pod of another node":         {from(1, 2, to("tcp", 8080)), "dropped"},
				"pod of another node, open":   {from(1, 2, to("tcp", 9090)), "pod"},
				"pod at an open UDP port":     {from(3, 1, to("udp", 53)), "pod"},
				"pod at another UDP port":     {from(3, 1, to("udp", 9090)), "dropped"},
				"answer of an open UDP port":  {sends(other, "udp", 53, true), "pod"},
				"the pod sends from it":       {sends(other, "udp", 53, false), "dropped"},
				"answer to another node":      {sends(compiletest.PodIPs(1, 2)[f], "tcp", 9090, true), "pod"},
				"the pod opens to that node":  {sends(compiletest.PodIPs(1, 2)[f], "tcp", 9090, false), "dropped"},
				"pod at the probed port":      {from(3, 1, to("tcp", 8080)), "dropped"},
				"pod at an open port":         {from(3, 1, to("tcp", 9090)), "pod"},
				"pod pings":                   {from(3, 1, to("icmp", 0)), "pod"},
				"answer to the probe":         {sends(node, "tcp", 8080, true), "host"},
				"the pod opens to the host":   {sends(node, "tcp", 8080, false), "dropped"},
				"answer at an open port":      {sends(other, "tcp", 9090, true), "pod"},
				"the pod opens to a pod":      {sends(other, "tcp", 9090, false), "dropped"},
				"answer of another port":      {sends(other, "tcp", 8080, true), "dropped"},
				"the pod sends UDP":           {sends(other, "udp", 9090, false), "dropped"},
				"the pod pings":               {sends(other, "icmp", 0, false), "dropped"},
				"the pod opens to outside":    {sends(compiletest.EgressAddr(60)[f], "tcp", 9090, false), "dropped"},
				"another pod is not isolated": {from(3, 1, trace.Packet{Dst: node, Proto: "udp", DstPort: 53}), "host"},
			} {
				for _, e := range x.ends {
					if string(e.Kind) != x.want {
						t.Errorf("%s gateway, IPv%d, %s: %s, want %s", mode, 4+2*f, what, trace.Sentences(x.ends),
							x.want)
					}
				}
				if len(x.ends) == 0 {
					t.Errorf("%s goes nowhere", what)
				}
			}
		}
		w := compiletest.Small("n1", mode)
		w.SetAttachment(compiletest.Attachment(compiletest.Pod(3, "n1")))
		if have := net["n1"].Text(); !strings.Contains(have,
			"problem of LogicalNetwork/tenant_blue ProbePorts: ") {
			t.Errorf("no problem about probe ports:\n%s", have)
		}
		if text := compile.Full(w, all.Features()).Text(); strings.Contains(text, "egret-isolated") {
			t.Error("a pod of the default network is isolated")
		}
		a := compiletest.Attachment(compiletest.Pod(3, "n1"))
		a.Further = []world.Interface{{Network: "blue"}}
		w.SetAttachment(a)
		if text := compile.Full(w, all.Features()).Text(); !strings.Contains(text, "egret-isolated") {
			t.Error("a pod with a further interface is not isolated while its namespace is unknown")
		}
	}
}
