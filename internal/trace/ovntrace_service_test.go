package trace_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Addresses of Services of each family.
var (
	clusterIPs = []netip.Addr{netip.MustParseAddr("10.96.0.20"), netip.MustParseAddr("fd00:10:96::20")}
	localVIPs  = []netip.Addr{netip.MustParseAddr("10.96.0.21"), netip.MustParseAddr("fd00:10:96::21")}
	localOnly  = []netip.Addr{netip.MustParseAddr("169.254.169.3"), netip.MustParseAddr("fd69::3")}
	emptyVIPs  = []netip.Addr{netip.MustParseAddr("10.96.0.22"), netip.MustParseAddr("fd00:10:96::22")}
)

var transports = []string{"tcp", "udp", "sctp"}

// external is a Service of every protocol, with node ports first, first+1 and first+2 and endpoints on port 8080.
func external(name string, vips []netip.Addr, ingress int, local bool, first int,
	endpoints ...[]netip.Addr) *world.Service {
	s := &world.Service{Namespace: "ns1", Name: name, ClusterIPs: vips, ExternalLocal: local,
		LoadBalancerIPs: compiletest.EgressAddr(ingress)}
	for i, proto := range transports {
		p := world.ServicePort{Protocol: proto, Port: 80, NodePort: uint16(first + i)}
		for _, ips := range endpoints {
			for _, ip := range ips {
				p.Endpoints = append(p.Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 8080), Ready: true,
					Serving: true})
			}
		}
		s.Ports = append(s.Ports, p)
	}
	return s
}

// forSome is a Service whose load balancer's addresses are for some clients only.
func forSome(s *world.Service, clients []netip.Prefix) *world.Service {
	s.SourceRanges = clients
	return s
}

// TestServicesAgreeWithOVN holds the load balancers of node switch and gateway router against ovn-trace, SCTP's too:
// for every endpoint, the port by which a packet leaves node n1's zone, and whether the router's load balancer has it
// give the packet another source.
func TestServicesAgreeWithOVN(t *testing.T) {
	a := servicesIn(t, world.SharedGateway)
	neighbours(a.zones["n1"])
	for f := range 2 {
		a.checkServices(t, world.Family(f))
	}
	a.quiet(t)
}

// servicesIn is node n1's zone of a cluster with Services of every kind.
func servicesIn(t *testing.T, mode world.GatewayMode) *agreement {
	c := newCluster(mode)
	c.each(func(w *world.World) {
		w.SetService(external("cluster", clusterIPs, 70, false, 30080, compiletest.PodIPs(0, 1), compiletest.PodIPs(1,
			2)))
		w.SetService(external("local", localVIPs, 71, true, 30090, compiletest.PodIPs(0, 1), compiletest.PodIPs(1, 2)))
		w.SetService(external("none", emptyVIPs, 72, true, 30100))
		w.SetService(forSome(external("some", nil, 73, false, 30110, compiletest.PodIPs(0, 1)),
			compiletest.Node(1).Subnets))
		w.SetService(forSome(external("others", nil, 74, false, 30120, compiletest.PodIPs(0, 1)),
			compiletest.Node(2).Subnets))
	})
	a := &agreement{plans: c.plans(), zones: map[string]*ovntest.Env{}}
	a.start(t, "n1")
	return a
}

// TestLocalOnlyAgreesWithOVN: the host sends the clients of policy Local in by its management port, where the switch
// balances in local gateway mode, the gateway router in shared mode. UDP goes to a pod of the host's choice in local
// mode, where OVS in userspace could not balance fragments.
func TestLocalOnlyAgreesWithOVN(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		t.Run(string(mode), func(t *testing.T) { localOnlyAgrees(t, servicesIn(t, mode)) })
	}
}

func localOnlyAgrees(t *testing.T, a *agreement) {
	t.Helper()
	for f := range 2 {
		client, node := compiletest.EgressAddr(60)[f], compiletest.Node(1).HostAddrs[f]
		for i, proto := range transports {
			for _, port := range []uint16{uint16(30090 + i), uint16(30100 + i)} {
				p := trace.Packet{Src: client, Dst: node, Proto: proto, DstPort: port}
				ends := read(t, a.plans).WalkIntoHost("n1", "eth1", p)
				if len(ends) == 0 {
					t.Errorf("%s to port %d ends nowhere", proto, port)
				}
				for _, end := range ends {
					sent, in := fromHost(f, p, end)
					a.compareFirst(t, sent, []trace.End{end}, in)
				}
			}
			none := trace.Packet{Src: client, Dst: localOnly[f], Proto: proto, DstPort: 99} // no Service has that port
			a.compareFirst(t, none, read(t, a.plans).WalkIntoHost("n1", "eth1", none), hostEntrance())
		}
	}
	a.quiet(t)
}

// fromHost is a packet as the host sends it in, and the entrance by which it does: to a pod of this node as a
// neighbour, to all else by the router. What the host refuses, OVN would drop where it balances to own pods.
func fromHost(f int, p trace.Packet, end trace.End) (trace.Packet, entrance) {
	in := hostEntrance()
	p.Dst = localOnly[f]
	for _, s := range end.Steps {
		if _, at, ok := strings.Cut(s, "@services/2-all/one."); ok {
			to := netip.MustParseAddrPort(at[strings.Index(at, ": ")+2:])
			p.Dst, p.DstPort = to.Addr(), to.Port()
		}
	}
	if pod := compiletest.Pod(0, "n1"); slices.Contains(pod.IPs, p.Dst) {
		in.to = compiletest.Attachment(pod).MAC
	}
	return p, in
}

// TestACLsDropNothingElse: a switch with ACLs lets pass what conntrack calls invalid, as one without does.
func TestACLsDropNothingElse(t *testing.T) {
	a := servicesIn(t, world.SharedGateway)
	from, to := compiletest.Pod(3, "n1"), compiletest.Pod(0, "n1")
	in := podEntrance(from)
	for f := range world.Family(2) {
		microflow := fmt.Sprintf("inport==%q && eth.src==%s && eth.dst==%s && %s.src==%s && %s.dst==%s && ip.ttl==64 "+
			"&& tcp && tcp.dst==8080",
			in.port, in.from, compiletest.Attachment(to).MAC, f.Match(), from.IPs[f], f.Match(), to.IPs[f])
		text, err := a.zones["n1"].TraceOnce(t.Context(), in.datapath, microflow, "--ct=trk,inv", "--ct=trk,inv")
		if err != nil {
			t.Fatal(err)
		}
		if have, want := leaves(text), plan.DefaultNames().PodPort(to.Namespace, to.Name); have != want {
			t.Errorf("%s: OVN says %s, want %s\n%s", f.Match(), have, want, text)
		}
	}
	a.quiet(t)
}

// neighbours are what the gateway router has learnt of the join switch.
func neighbours(e *ovntest.Env) {
	router := strings.TrimSpace(e.SBCtl("--bare", "--columns=_uuid", "find", "Datapath_Binding",
		"external_ids:name=GR_n1"))
	mac := world.MAC(world.Nth(world.DefaultJoinSubnets()[0], 1))
	for _, s := range world.DefaultJoinSubnets() {
		e.SBCtl("create", "MAC_Binding", "datapath="+router, "logical_port=rtoj-GR_n1", fmt.Sprintf("ip=%q",
			world.Nth(s, 1).String()), fmt.Sprintf("mac=%q", mac))
	}
}

// checkServices sends from pod 3 of n1, and from outside to n1: there to load balancers' addresses only, for ovn-trace
// 25.03 loses what has the router's own address as destination, in ct_snat without an entry (lr_in_unsnat).
func (a *agreement) checkServices(t *testing.T, f world.Family) {
	node := compiletest.Node(1).HostAddrs[f]
	pod, cluster := compiletest.Pod(3, "n1"), read(t, a.plans)
	for i, proto := range transports {
		for _, to := range []netip.AddrPort{
			netip.AddrPortFrom(clusterIPs[f], 80), netip.AddrPortFrom(emptyVIPs[f], 80),
			netip.AddrPortFrom(compiletest.EgressAddr(70)[f], 80), netip.AddrPortFrom(compiletest.EgressAddr(71)[f],
				80), netip.AddrPortFrom(compiletest.EgressAddr(72)[f], 80),
			netip.AddrPortFrom(compiletest.EgressAddr(73)[f], 80), netip.AddrPortFrom(compiletest.EgressAddr(74)[f],
				80),
			netip.AddrPortFrom(node, uint16(30080+i)), netip.AddrPortFrom(node, uint16(30090+i)),
			netip.AddrPortFrom(node, uint16(30100+i)),
		} {
			p := trace.Packet{Src: pod.IPs[f], Dst: to.Addr(), Proto: proto, DstPort: to.Port()}
			a.compareFirst(t, p, cluster.Walk(p), podEntrance(pod))
			if p.Src = compiletest.EgressAddr(60)[f]; to.Addr() != node && !clusterIP(to.Addr()) &&
				!refusedOutside(to.Addr()) {
				a.compareFirst(t, p, cluster.Arrive("n1", p), uplinkEntrance())
			}
		}
	}
}

// refusedOutside: the bridge drops before OVN sees it.
func refusedOutside(a netip.Addr) bool {
	f := world.FamilyOf(a)
	return a == compiletest.EgressAddr(73)[f] || a == compiletest.EgressAddr(74)[f]
}

func clusterIP(a netip.Addr) bool {
	f := world.FamilyOf(a)
	return a == clusterIPs[f] || a == emptyVIPs[f]
}

// entrance is a port of node n1's zone, and the hardware addresses of what comes in there.
type entrance struct{ datapath, port, from, to string }

func podEntrance(p *world.Pod) entrance {
	a := compiletest.Attachment(p)
	port := plan.DefaultNames().PodPort(a.Namespace, a.Name)
	return entrance{"n1", port, a.MAC, world.MAC(world.Nth(compiletest.Node(1).Subnets[0], 1))}
}

func hostEntrance() entrance {
	s := compiletest.Node(1).Subnets[0]
	return entrance{"n1", "k8s-n1", world.MAC(world.Nth(s, 2)), world.MAC(world.Nth(s, 1))}
}

func uplinkEntrance() entrance {
	return entrance{"ext_n1", "breth0_n1", "02:00:00:00:00:99", compiletest.Node(1).UplinkMAC.String()}
}

// compareFirst holds the first zone of every end against OVN, which is told the endpoint that the walk took.
func (a *agreement) compareFirst(t *testing.T, p trace.Packet, ends []trace.End, in entrance) {
	t.Helper()
	for _, end := range ends {
		want := "dropped"
		options := []string{"--ct=new", "--ct=new", "--ct=new", "--ct=new"}
		to, balanced := backend(end)
		if balanced {
			options = append(options, "--lb-dst="+to)
		}
		if balanced || end.Kind == trace.ToPod {
			want = firstPort(end) + source(p, end, in)
		}
		ip := world.FamilyOf(p.Src).Match()
		microflow := fmt.Sprintf("inport==%q && eth.src==%s && eth.dst==%s && %s.src==%s && %s.dst==%s && ip.ttl==64 "+
			"&& %s && %s.dst==%d",
			in.port, in.from, in.to, ip, p.Src, ip, p.Dst, p.Proto, p.Proto, p.DstPort)
		text, err := a.zones["n1"].TraceOnce(t.Context(), in.datapath, microflow, options...)
		if err != nil {
			t.Fatal(err)
		}
		if have := leaves(text); have != want {
			t.Errorf("%s from %s to %s: OVN says %s, the walk %s\n%s", p.Proto, p.Src, netip.AddrPortFrom(p.Dst,
				p.DstPort), have, want, text)
		}
	}
}

// backend is the endpoint that a walk's packet was balanced to.
func backend(end trace.End) (string, bool) {
	for _, s := range end.Steps {
		if _, to, ok := strings.Cut(s, " balances to "); ok {
			return to, true
		}
	}
	return "", false
}

// firstPort is the port by which a packet leaves n1's zone.
func firstPort(end trace.End) string {
	if end.Node == "n1" {
		return end.Why
	}
	return "tstor-" + end.Node
}

// source is what the gateway router's load balancer says of it. ovn-trace 25.03 forgets that on the way to where the
// router acts on it (lr_out_snat).
func source(p trace.Packet, end trace.End, in entrance) string {
	switch {
	case in != uplinkEntrance():
		return ""
	case p.Src == end.Src:
		return ", skip_snat"
	}
	return ", force_snat"
}

var (
	// rejects: OVN answers by itself.
	rejects  = regexp.MustCompile(`(tcp_reset|sctp_abort|icmp4|icmp6|reject) \{`)
	outputTo = regexp.MustCompile(`/\* output to "([^"]+)"`)
	snatSaid = regexp.MustCompile(`; (force_snat|skip_snat)\)`)
)

// leaves is the port by which OVN's packet leaves.
func leaves(text string) string {
	out := outputTo.FindAllStringSubmatch(text, -1)
	if len(out) == 0 || rejects.MatchString(text) || strings.HasSuffix(strings.TrimSpace(text), "drop;") {
		return "dropped"
	}
	said := out[len(out)-1][1]
	if m := snatSaid.FindStringSubmatch(text); m != nil {
		said += ", " + m[1]
	}
	return said
}
