package trace_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/world"
)

// TestIsolationAgreesWithOVN: the port in the default network of a pod with another primary network lets in connections
// of its node to declared probe ports, and all connections to ports that the pod opens. It lets out answers alone. That
// is so with few ports, and with so many that they are in one group.
func TestIsolationAgreesWithOVN(t *testing.T) {
	for _, more := range []int{0, 60} {
		t.Run(fmt.Sprint(more, " more ports"), func(t *testing.T) { agreeOnIsolation(t, more) })
	}
}

func agreeOnIsolation(t *testing.T, more int) {
	own := []netip.Addr{netip.MustParseAddr("10.244.1.77"), netip.MustParseAddr("fd00:10:244:1::77")}
	open := &world.Pod{Namespace: "tenant", Name: "p", UID: "p", Node: "n1", IPs: own, Confirmed: true,
		ProbePorts: []uint16{8080, 8081}, OpenPorts: []world.OpenPort{{Protocol: "icmp"},
			{Protocol: "tcp", Port: 9090}, {Protocol: "udp", Port: 53}}}
	for i := range more {
		port := world.OpenPort{Protocol: []string{"tcp", "udp", "sctp"}[i%3], Port: uint16(20000 + i)}
		open.OpenPorts = append(open.OpenPorts, port)
	}
	closed := &world.Pod{Namespace: "tenant", Name: "q", UID: "q", Node: "n1", Confirmed: true,
		IPs: []netip.Addr{own[0].Next(), own[1].Next()}, ProbePorts: []uint16{8080}}
	c := newCluster(world.SharedGateway)
	c.each(func(w *world.World) {
		w.SetNamespace(&world.Namespace{Name: "tenant", OwnNetwork: true})
		for _, p := range []*world.Pod{open, closed} {
			w.SetPod(p)
			if w.Self == "n1" {
				w.SetAttachment(compiletest.Attachment(p))
			}
		}
	})
	x := isolation{agreement{plans: c.plans(), zones: map[string]*ovntest.Env{}}}
	x.start(t, "n1")
	pod, shut, host := podEntrance(open), podEntrance(closed), hostEntrance()
	other := podEntrance(compiletest.Pod(3, "n1"))
	for f := range world.Family(2) {
		node, client := zone.ManagementAddr(compiletest.Node(1).Subnets[f]), compiletest.PodIPs(3, 1)[f]
		ip := func(src, dst netip.Addr, rest string) string {
			return fmt.Sprintf("%s.src==%s && %[1]s.dst==%[3]s && ip.ttl==64 && %s", f.Match(), src, dst, rest)
		}
		echo := [...]string{"icmp4.type==8", "icmp6.type==128"}[f]
		for _, c := range []struct {
			from, to   entrance
			src, dst   netip.Addr
			packet, ct string
			passes     bool
		}{
			{host, pod, node, own[f], "tcp.dst==8080", "new", true},
			{host, pod, node, own[f], "tcp.dst==9090", "new", true},
			{host, pod, node, own[f], "tcp.dst==22", "new", false},
			{host, pod, node, own[f], "udp.dst==8080", "new", false},
			{host, shut, node, closed.IPs[f], "tcp.dst==8080", "new", true},
			{host, shut, node, closed.IPs[f], echo, "new", false},
			{other, pod, client, own[f], "tcp.dst==8080", "new", false},
			{other, pod, client, own[f], "tcp.dst==9090", "new", true},
			{other, pod, client, own[f], "udp.dst==53", "new", true},
			{other, pod, client, own[f], "udp.dst==9090", "new", false},
			{other, pod, client, own[f], echo, "new", true},
			{other, shut, client, closed.IPs[f], "tcp.dst==8080", "new", false},
			{shut, pod, closed.IPs[f], own[f], "tcp.dst==9090", "new", false},
			{pod, host, own[f], node, "tcp.src==8080", "est,rpl", true},
			{pod, host, own[f], node, "tcp.src==8080 && tcp.flags==2", "new", false},
			{pod, other, own[f], client, "tcp.src==9090", "est,rpl", true},
			{pod, other, own[f], client, "udp.src==53", "est,rpl", true},
			{pod, other, own[f], client, "udp.src==53", "new", false},
			{pod, other, own[f], client, "tcp.src==9090 && tcp.flags==2", "new", false},
			// An ACK begins nothing, too.
			{pod, other, own[f], client, "tcp.src==9090 && tcp.flags==0x10", "new", false},
			{pod, other, own[f], client, echo, "new", false},
			{other, host, client, node, "udp.dst==53", "new", true},
		} {
			x.check(t, c.from, c.to, ip(c.src, c.dst, c.packet), c.ct, c.passes)
		}
	}
	x.checkNeighbours(t, own, pod, shut, host, other)
	x.quiet(t)
}

type isolation struct{ agreement }

// check sends a packet. It passes if OVN gives it to the other port, or answers it.
func (x isolation) check(t *testing.T, from, to entrance, packet, ct string, passes bool) {
	t.Helper()
	dst := to.from
	if strings.Contains(packet, "arp.op==1") && !strings.Contains(packet, "unicast") {
		dst = "ff:ff:ff:ff:ff:ff"
	}
	packet = strings.ReplaceAll(packet, "unicast && ", "")
	state := "--ct=trk," + ct
	microflow := fmt.Sprintf("inport==%q && eth.src==%s && eth.dst==%s && %s", from.port, from.from, dst, packet)
	text, err := x.zones["n1"].TraceOnce(t.Context(), "n1", microflow, "--minimal", state, state, state)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Contains(text, "output(\""+to.port) || strings.Contains(text, "output(\""+from.port)
	if have != passes {
		t.Errorf("from %s to %s, %s, %s: passes %t, want %t\n%s", from.port, to.port, packet, ct, have, passes, text)
	}
}

// checkNeighbours: a pod has ARP with its node's management port, and with all neighbours if it opens ports. IPv6
// Neighbor Discovery passes.
func (x isolation) checkNeighbours(t *testing.T, own []netip.Addr, pod, shut, host, other entrance) {
	subnets, client := compiletest.Node(1).Subnets, compiletest.PodIPs(3, 1)
	node, router := zone.ManagementAddr(subnets[0]), zone.RouterAddr(subnets[0])
	for _, c := range []struct {
		from, to entrance
		src, dst netip.Addr
		passes   bool
	}{
		{pod, host, own[0], node, true},
		{pod, host, own[0], router, true},
		{pod, other, own[0], client[0], true},
		{host, pod, node, own[0], true},
		{other, pod, client[0], own[0], true},
		{shut, host, own[0].Next(), node, true},
		{host, shut, node, own[0].Next(), true},
		{shut, other, own[0].Next(), client[0], false},
		{shut, host, own[0].Next(), router, false},
		{other, shut, client[0], own[0].Next(), false},
	} {
		arp := fmt.Sprintf("arp.op==1 && arp.sha==%s && arp.spa==%s && arp.tpa==%s", c.from.from, c.src, c.dst)
		if c.dst != router {
			// To the port, and not to OVN, as broadcasts are.
			x.check(t, c.from, c.to, "unicast && "+arp, "new", c.passes)
		}
		if c.to != shut {
			x.check(t, c.from, c.to, arp, "new", c.passes)
		}
	}
	node6, own6 := zone.ManagementAddr(subnets[1]), own[1].Next()
	x.check(t, host, shut, fmt.Sprintf("ip6.src==%s && ip6.dst==%s && nd_ns && nd.target==%[2]s && ip.ttl==255", node6,
		own6), "new", true)
	x.check(t, shut, host, fmt.Sprintf("ip6.src==%s && ip6.dst==%s && nd_na && nd.target==%[1]s && nd.tll==%[3]s && "+
		"ip.ttl==255", own6, node6, shut.from), "new", true)
}
