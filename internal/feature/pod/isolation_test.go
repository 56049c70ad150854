package pod_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/pod"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestIsolation: the port in the default network of a pod with another primary network lets in connections of its node
// to declared probe ports, and all connections to ports that the pod opens. It lets out answers alone. That is so with
// few ports, and with so many that they are in one group.
func TestIsolation(t *testing.T) {
	for _, more := range []int{0, 60} {
		t.Run(fmt.Sprint(more, " more ports"), func(t *testing.T) { checkIsolation(t, more) })
	}
}

func checkIsolation(t *testing.T, more int) {
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
			for i := range more {
				port := world.OpenPort{Protocol: []string{"tcp", "udp", "sctp"}[i%3], Port: uint16(20000 + i)}
				p.OpenPorts = append(p.OpenPorts, port)
			}
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

// TestGroupsAreFew: whatever ports a pod names, it has few groups and ACLs. Up to eight numbers it shares them with all
// pods that have the same.
func TestGroupsAreFew(t *testing.T) {
	if have := len(rowsOfPorts("p", 6, 2)) - len(rowsOfPorts("p", 5, 2)); have != 2 {
		t.Errorf("the eighth port number has %d rows, want a group and an ACL", have)
	}
	both := rowsOfPorts("q", 7, 1)
	for id := range rowsOfPorts("p", 7, 1) {
		if both[id] == nil {
			t.Errorf("pods with the same ports do not share %s", id)
		}
	}
	few, many := rowsOfPorts("p", 0, 9), rowsOfPorts("p", 64, 64)
	if len(few) > 12 || len(few) != len(many) {
		t.Errorf("nine ports have %d groups and ACLs, and 128 have %d", len(few), len(many))
	}
}

// rowsOfPorts are the groups and ACLs of a pod with so many ports of probes and open ports.
func rowsOfPorts(name string, probed, open int) map[plan.RowID]plan.Cols {
	w := compiletest.Small("n1", world.SharedGateway)
	p := compiletest.Pod(1, "n1")
	p.Name = name
	for i := range probed {
		p.ProbePorts = append(p.ProbePorts, uint16(1000+i))
	}
	for i := range open {
		p.OpenPorts = append(p.OpenPorts, world.OpenPort{Protocol: "tcp", Port: uint16(2000 + i)})
	}
	w.SetNamespace(&world.Namespace{Name: p.Namespace, OwnNetwork: true})
	w.SetPod(p)
	w.SetAttachment(compiletest.Attachment(p))
	out := map[plan.RowID]plan.Cols{}
	for id, row := range compile.Full(w, []compile.Feature{pod.Ports{}}).NB.Rows() {
		if id.Table != "Logical_Switch_Port" {
			out[id] = row.Cols
		}
	}
	return out
}
