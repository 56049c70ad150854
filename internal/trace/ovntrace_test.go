package trace_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestAgreesWithOVN: on the rows that the real planes write, ovn-northd and ovn-trace come to the same as Walk, zone by
// zone: the port by which a packet leaves the zone, the source it is translated to, the mark it has for the bridge. And
// OVN takes every row without a warning, from ovn-northd or on any logical flow.
func TestAgreesWithOVN(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, x := range []struct {
			name    string
			hosts   []string // of the egress IPs of each family, in order
			inForce bool
			holders []string
			traffic *world.Traffic // nil: to all destinations
		}{
			{"two holders", []string{"n2", "n3"}, true, []string{"n2", "n3"}, nil},
			{"held on the pod's node", []string{"n1"}, true, []string{"n1"}, nil},
			{"in force and nobody ready", []string{"n2"}, true, nil, nil},
			{"not in force yet", []string{"n2"}, false, nil, nil},
			{"by destination", []string{"n2"}, true, []string{"n2"}, toOutside()},
			{"by destination, held on the pod's node", []string{"n1"}, true, []string{"n1"}, toOutside()},
			{"by destination, nobody ready", []string{"n2"}, true, nil, toOutside()},
			{"by many destinations", []string{"n2"}, true, []string{"n2"}, toMany()},
		} {
			t.Run(string(mode)+"/"+x.name, func(t *testing.T) {
				t.Parallel()
				c := newCluster(mode)
				c.serve(x.hosts, x.inForce, x.holders, x.traffic)
				c.each(func(w *world.World) { w.SetService(webService()) })
				a := &agreement{plans: c.plans(), zones: map[string]*ovntest.Env{}}
				for name := range a.plans {
					a.start(t, name)
				}
				a.check(t)
				a.quiet(t)
			})
		}
	}
}

// toOutside has what check calls outside, and not what it calls elsewhere.
func toOutside() *world.Traffic {
	o := compiletest.Traffic(0, "web")
	var list []netip.Prefix
	for _, ip := range compiletest.EgressAddr(50) {
		list = append(list, netip.PrefixFrom(ip, ip.BitLen()-1))
	}
	o.Networks = destinations.Of(list...)
	return o
}

// toMany has so many more that their sets are written as large ones are.
func toMany() *world.Traffic {
	o := toOutside()
	list := slices.Clone(o.Networks)
	for i := range 300 {
		list = append(list, netip.PrefixFrom(compiletest.V4(20, i>>6, i<<2&255, 0), 24))
	}
	o.Networks = destinations.Of(list...)
	return o
}

// serve makes an EgressIP of an address of each family for each host.
func (c cluster) serve(hosts []string, inForce bool, holders []string, traffic *world.Traffic) {
	e := compiletest.EgressIP(0, "app=web")
	if traffic != nil {
		e.Traffic = compiletest.TrafficSelector("web")
		c.each(func(w *world.World) { w.SetTraffic(traffic) })
	}
	for i, h := range hosts {
		for _, ip := range compiletest.EgressAddr(i) {
			e.IPs, e.Items = append(e.IPs, ip), append(e.Items, world.Assignment{Node: h, IP: ip})
		}
	}
	e.InForce = [2]bool{inForce, inForce}
	c.each(func(w *world.World) {
		w.SetEgressIP(e)
		for _, h := range holders {
			held := &world.Holding{Node: h, BootID: "boot-" + h, Holds: map[string][]netip.Addr{}}
			for _, a := range e.Items {
				if a.Node == h {
					held.Holds[e.Name] = append(held.Holds[e.Name], a.IP)
				}
			}
			w.SetHolding(held)
		}
	})
}

// webService has one backend, pod 1 on n2, so that there is one answer.
func webService() *world.Service {
	s := &world.Service{Namespace: "ns1", Name: "web", Ports: []world.ServicePort{{Protocol: "tcp", Port: 80}}}
	for f, ip := range compiletest.PodIPs(1, 2) {
		s.ClusterIPs = append(s.ClusterIPs, webVIP[f])
		s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 8080),
			Ready: true, Serving: true})
	}
	return s
}

var (
	webVIP = []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::10")}
	noVIP  = []netip.Addr{netip.MustParseAddr("10.96.0.2"), netip.MustParseAddr("fd00:10:96::2")}
)

// agreement is one zone's databases, ovn-northd and ovn-trace for each node's plan.
type agreement struct {
	plans trace.Network
	zones map[string]*ovntest.Env
}

// start applies a plan with the real planes. The zone's own chassis is what its ovn-controller would write.
func (a *agreement) start(t *testing.T, node string) {
	e := ovntest.StartDatabases(t)
	a.zones[node] = e
	e.SBCtl("chassis-add", node, "geneve", compiletest.Primary(int(node[1]-'0')).String())
	o := ovn.Options{Hold: -1, Log: slog.New(slog.DiscardHandler)}
	for _, p := range []*ovn.Plane{ovn.NewSB(e.SB, o), ovn.NewNB(e.NB, o)} {
		if err := plane.Apply(t.Context(), []plane.Plane{p}, a.plans[node]); err != nil {
			t.Fatalf("%s of %s: %v", p.Name(), node, err)
		}
		p.Close()
	}
	e.StartNorthd() // when all is there: else it may see ports before the chassis that they name, and complain
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	bindings(e, a.plans[node])
}

// bindings makes learnt ones of the static ones: ovn-controller asks both, and ovn-trace 25.03 only the former.
func bindings(e *ovntest.Env, p *plan.State) {
	name := plan.DefaultNames().ClusterRouter()
	router := strings.TrimSpace(e.SBCtl("--bare", "--columns=_uuid", "find", "Datapath_Binding",
		"external_ids:name="+name))
	var args []string
	for id, row := range p.NB.Rows() {
		if id.Table == "Static_MAC_Binding" {
			args = append(args, "--", "create", "MAC_Binding", "datapath="+router)
			for _, col := range []string{"logical_port", "ip", "mac"} {
				args = append(args, fmt.Sprintf("%s=%q", col, row.Cols[col]))
			}
		}
	}
	e.SBCtl(args[1:]...)
}

// quiet: ovn-northd had nothing to complain of.
func (a *agreement) quiet(t *testing.T) {
	for node, e := range a.zones {
		e.Kill("northd")
		if said := e.Log("northd"); said != "" {
			t.Errorf("ovn-northd of %s said:\n%s", node, said)
		}
	}
}

func (a *agreement) check(t *testing.T) {
	for f := range 2 {
		outside, elsewhere := compiletest.EgressAddr(50)[f], compiletest.EgressAddr(70)[f]
		client := compiletest.EgressAddr(60)[f]
		for _, p := range []struct {
			name  string
			pod   int
			dst   netip.Addr
			reply bool
		}{
			{"selected", 0, outside, false},
			{"selected, on n3", 2, outside, false},
			{"selected, elsewhere", 0, elsewhere, false},
			{"selected, on n3, elsewhere", 2, elsewhere, false},
			{"not selected", 3, outside, false},
			{"not selected, on n2", 1, outside, false},
			{"to a pod of another node", 0, compiletest.PodIPs(1, 2)[f], false},
			{"to a pod of the same node", 0, compiletest.PodIPs(3, 1)[f], false},
			{"to its own node", 0, compiletest.Node(1).HostAddrs[f], false},
			{"to another node", 0, compiletest.Node(2).HostAddrs[f], false},
			{"to another node, from n3", 2, compiletest.Node(1).HostAddrs[f], false},
			{"not selected, to another node", 3, compiletest.Node(2).HostAddrs[f], false},
			{"to a Service", 0, webVIP[f], false},
			{"to a cluster IP that no Service has", 0, noVIP[f], false},
			{"a reply to a client outside", 0, client, true},
		} {
			pod := compiletest.Pod(p.pod, fmt.Sprint("n", 1+p.pod%3))
			a.compare(t, fmt.Sprint(p.name, ", ", world.Family(f)), pod, trace.Packet{Src: pod.IPs[f], Dst: p.dst,
				Proto: "tcp", DstPort: 80, Reply: p.reply})
		}
	}
	pod := compiletest.Pod(3, "n1")
	a.compare(t, "to a port that its Service has not", pod, trace.Packet{Src: pod.IPs[0], Dst: webVIP[0],
		Proto: "tcp", DstPort: 81})
}

// compare holds every zone that the packet passes against OVN.
func (a *agreement) compare(t *testing.T, name string, pod *world.Pod, p trace.Packet) {
	t.Helper()
	want := map[leg][]string{}
	for _, end := range read(t, a.plans).Walk(p) {
		for l, out := range a.legs(end, p) {
			want[l] = append(want[l], out)
		}
	}
	for l, outs := range want {
		have := a.ask(t, l, pod, p)
		if want := distinct(outs); have != want {
			t.Errorf("%s, %s to %s, zone %s, from %q: OVN says %s, the walk %s", name, p.Src, p.Dst, l.node, l.from,
				have, want)
		}
	}
}

func distinct(l []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(l))), " | ")
}

// leg is a zone on a packet's way, the zone it came from ("": it is a pod's), and where it went then, as far as that
// was translated.
type leg struct {
	node, from string
	dst        netip.Addr
}

// legs are what became of the packet in each zone that it passed, read from the steps of a walk.
func (a *agreement) legs(end trace.End, p trace.Packet) map[leg]string {
	out := map[leg]string{}
	from, dst := "", p.Dst
	for rest := end.Steps; len(rest) > 0; {
		node, _, _ := strings.Cut(rest[0], ": ")
		n := slices.IndexFunc(rest, func(s string) bool { return !strings.HasPrefix(s, node+": ") })
		if n < 0 {
			n = len(rest)
		}
		steps := strings.Join(rest[:n], "\n")
		if rest = rest[n:]; strings.Contains(steps, "over the nodes' network") {
			break // no zone: the host
		}
		next := ""
		if len(rest) > 0 {
			next, _, _ = strings.Cut(rest[0], ": ")
		}
		out[leg{node, from, dst}] = a.outcome(node, next, steps, end, p)
		from, dst = node, end.Dst
	}
	return out
}

var natStep = regexp.MustCompile(`(?m)^\w+: NAT (\S+)$`)

func (a *agreement) outcome(node, next, steps string, end trace.End, p trace.Packet) string {
	switch {
	case strings.Contains(steps, "GR_"+node+" forwards to"):
		src := p.Src.String()
		if m := natStep.FindStringSubmatch(steps); m != nil {
			row, _ := a.plans[node].NB.Get(plan.RowID{Table: "NAT", Name: m[1]})
			src = fmt.Sprint(row.Cols["external_ip"])
		}
		return uplink(src, strings.Contains(steps, "egressip-no-reroute/nodes."), p)
	case strings.Contains(steps, "to the management port"):
		return "port k8s-" + node
	case next != "":
		return "port tstor-" + next
	case end.Kind == trace.ToPod:
		return "port " + end.Why
	}
	return "dropped"
}

// uplink leaves out the source of a reply: its connection decides that, and neither a plan nor a trace knows it.
func uplink(src string, marked bool, p trace.Packet) string {
	if p.Reply {
		return "uplink"
	}
	return fmt.Sprintf("uplink as %s, marked %t", src, marked)
}

var (
	neighbour = regexp.MustCompile(`(?s)(arp|nd_ns) \{.*?\};\n`) // asks who has the next hop; no packet of ours
	output    = regexp.MustCompile(`output\("([^"]+)"\)`)
	snat      = regexp.MustCompile(`ct_snat\(ip[46]\.src=([^)]+)\)`)
)

// ask is OVN's answer for one leg: all ways that ECMP may take.
func (a *agreement) ask(t *testing.T, l leg, pod *world.Pod, p trace.Packet) string {
	t.Helper()
	datapath, microflow := l.packet(pod, p)
	state := "--ct=new"
	if p.Reply {
		state = "--ct=trk,est,rpl"
	}
	options := []string{"--minimal", state, state, state, state}
	var outs []string
	for _, hop := range []string{"--select-id=1", "--select-id=2"} {
		text, err := a.zones[l.node].TraceOnce(t.Context(), datapath, microflow, append(options, hop)...)
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, a.read(text, l.node, p))
		if !strings.Contains(text, "select:") {
			break
		}
	}
	return distinct(outs)
}

func (a *agreement) read(text, node string, p trace.Packet) string {
	text = neighbour.ReplaceAllString(text, "")
	out := output.FindAllStringSubmatch(text, -1)
	switch {
	case len(out) == 0 || strings.Contains(text, "tcp_reset") || strings.Contains(text, "reject {"):
		return "dropped"
	case out[0][1] != "breth0_"+node:
		return "port " + out[0][1]
	}
	src := p.Src.String()
	if m := snat.FindStringSubmatch(text); m != nil {
		src = m[1]
	}
	return uplink(src, strings.Contains(text, fmt.Sprintf("pkt.mark = %d;", plan.MarkNodeIP)), p)
}

// packet is the microflow that enters the zone: of the pod, or from the transit switch.
func (l leg) packet(pod *world.Pod, p trace.Packet) (datapath, microflow string) {
	a := compiletest.Attachment(pod)
	n := compiletest.Node(int(l.node[1] - '0'))
	port := plan.DefaultNames().PodPort(a.Namespace, a.Name)
	datapath, inport, from, to := l.node, port, a.MAC, world.MAC(world.Nth(n.Subnets[0], 1))
	if n.Subnets[world.FamilyOf(l.dst)].Contains(l.dst) {
		to = world.MAC(compiletest.PodIPs(3, 1)[0]) // the one pod of this table that is a neighbour
	}
	if l.from != "" {
		transit := func(name string) string {
			return world.MAC(world.Nth(world.DefaultTransitSubnets()[0], compiletest.Node(int(name[1]-'0')).ID))
		}
		names := plan.DefaultNames()
		datapath, inport = names.TransitSwitch(), names.TransitToRouter(l.from)
		from, to = transit(l.from), transit(l.node)
	}
	ip := world.FamilyOf(p.Src).Match()
	return datapath, fmt.Sprintf("inport==%q && eth.src==%s && eth.dst==%s && %s.src==%s && %s.dst==%s && ip.ttl==64 "+
		"&& tcp && tcp.dst==%d",
		inport, from, to, ip, p.Src, ip, l.dst, p.DstPort)
}
