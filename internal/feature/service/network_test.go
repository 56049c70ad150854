package service_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

var (
	inDefault = netip.MustParseAddr("10.244.1.77") // of pod tenant/p on n1
	inNetwork = netip.MustParseAddr("10.128.1.7")
	onOther   = netip.MustParseAddr("10.244.2.78") // of pod tenant/q on n2
	inOther   = netip.MustParseAddr("10.128.2.8")
)

// tenantWorld is n1's world with pods of namespace tenant, whose network is blue, and its Service web, of both policies
// Local if local.
func tenantWorld(mode world.GatewayMode, local bool) *world.World {
	w := compiletest.Small("n1", mode)
	w.SetNetwork(&world.Network{Name: "blue", ID: 1, Namespaces: []string{"tenant"},
		Subnets: []world.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/16"), NodeLen: 24}},
		Join:    []netip.Prefix{netip.MustParsePrefix("100.65.0.0/16")}, Transit: w.Config.TransitSubnets})
	w.SetNamespace(&world.Namespace{Name: "tenant", OwnNetwork: true})
	for i := 1; i <= 3; i++ {
		n := compiletest.Node(i)
		n.Further = map[string]world.NodeNetwork{"blue": {Subnets: []netip.Prefix{
			netip.MustParsePrefix(fmt.Sprintf("10.128.%d.0/24", i))}}}
		w.SetNode(n)
	}
	for name, ips := range map[string][2]netip.Addr{"p": {inDefault, inNetwork}, "q": {onOther, inOther},
		"r": {netip.MustParseAddr("10.244.2.80"), netip.MustParseAddr("10.128.2.9")}} {
		further := []world.Interface{{Network: "blue", MAC: world.MAC(ips[1]), IPs: ips[1:]}}
		node := map[string]string{"p": "n1", "q": "n2", "r": "n2"}[name]
		w.SetPod(&world.Pod{Namespace: "tenant", Name: name, UID: name, Node: node, IPs: ips[:1], Confirmed: true,
			Running: true, Further: further})
		if node == "n1" {
			w.SetAttachment(&world.Attachment{Namespace: "tenant", Name: name, UID: name, HostIface: name,
				MAC: world.MAC(ips[0]), IPs: ips[:1], Further: further})
		}
	}
	s := &world.Service{Namespace: "tenant", Name: "web", UID: "web", LoadBalancer: true,
		ClusterIPs: []netip.Addr{tenantIP}, LoadBalancerIPs: []netip.Addr{tenantBalancer},
		ExternalLocal: local, InternalLocal: local, HealthCheckPort: 32000,
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 80, NodePort: 30999}}}
	for _, e := range []struct {
		ip        netip.Addr
		pod, node string
	}{
		{inDefault, "p", "n1"}, {onOther, "q", "n2"}, {compiletest.Primary(1), "", "n1"},
		{netip.MustParseAddr("10.244.2.79"), "r", "n2"}, // of a former pod r
		{compiletest.PodIPs(0, 1)[0], "", "n1"},         // of a pod of the default network
		{netip.MustParseAddr("10.96.0.10"), "", "n1"},   // a cluster IP
		{inNetwork, "p", "n1"},                          // once more
	} {
		s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(e.ip, 8080),
			Pod: e.pod, Node: e.node, Ready: true, Serving: true})
	}
	w.SetService(s)
	return w
}

var (
	tenantIP       = netip.MustParseAddr("10.96.0.88")
	tenantBalancer = netip.MustParseAddr("203.0.113.88")
)

// TestServiceOfNetwork: a Service leads into its namespace's network alone, to the addresses that its pods have there.
// The host brings connections from outside to hosts itself, and others to the network's gateway router.
func TestServiceOfNetwork(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, local := range []bool{false, true} {
			w := tenantWorld(mode, local)
			plans := compile.Full(w, all.Features())
			if have := balancersOf(plans, "tenant/web"); have != tenantBalancers[local] {
				t.Errorf("%s gateway, policies local %v: have\n%swant\n%s", mode, local, have, tenantBalancers[local])
			}
			if have := linesAbout(plans, "tenant/web"); have != tenantWays(local) {
				t.Errorf("%s gateway, policies local %v: have\n%swant\n%s", mode, local, have, tenantWays(local))
			}
			if have := service.Refusals(&w.View, w.Service("tenant/web")); len(have) != 1 ||
				!strings.Contains(have[0].Message, "endpoint 10.96.0.10") {
				t.Errorf("refused %v", have)
			}
			if have := service.Served(&w.View,
				w.Service("tenant/web")); len(have) != 1 || have[0].IP != tenantBalancer {
				t.Errorf("served at %v", have)
			}
			w.DelNetwork("blue") // the namespace has none then
			plans = compile.Full(w, all.Features())
			if have := balancersOf(plans, "tenant/web") + linesAbout(plans, "tenant/web"); have != refusedWays(local) {
				t.Errorf("%s gateway, without the network: have\n%s", mode, have)
			}
		}
	}
}

// tenantBalancers are the load balancers of Service web, by whether its policies are Local.
var tenantBalancers = map[bool]string{
	false: "blue_Service_tenant/web_TCP_cluster in blue_egret-services " +
		"map[10.96.0.88:80:10.128.1.7:8080,10.128.2.8:8080,172.18.0.2:8080 " +
		"203.0.113.88:80:10.128.1.7:8080,10.128.2.8:8080,172.18.0.2:8080]\n" +
		"blue_Service_tenant/web_TCP_node_router_n1 in blue_egret-services-gateway " +
		"map[10.96.0.88:80:10.128.1.7:8080,10.128.2.8:8080]\n" +
		"blue_Service_tenant/web_TCP_node_switch_n1 in blue_egret-services " +
		"map[172.18.0.2:30999:10.128.1.7:8080,10.128.2.8:8080,172.18.0.2:8080 " +
		"172.19.1.2:30999:10.128.1.7:8080,10.128.2.8:8080,172.18.0.2:8080]\n",
	true: "blue_Service_tenant/web_TCP_cluster in blue_egret-services " +
		"map[203.0.113.88:80:10.128.1.7:8080,10.128.2.8:8080,172.18.0.2:8080]\n" +
		"blue_Service_tenant/web_TCP_node_local_router_n1 in blue_egret-services-gateway " +
		"map[10.96.0.88:80:10.128.1.7:8080]\n" +
		"blue_Service_tenant/web_TCP_node_switch_n1 in blue_egret-services " +
		"map[10.96.0.88:80:10.128.1.7:8080,172.18.0.2:8080 " +
		"172.18.0.2:30999:10.128.1.7:8080,10.128.2.8:8080,172.18.0.2:8080 " +
		"172.19.1.2:30999:10.128.1.7:8080,10.128.2.8:8080,172.18.0.2:8080]\n",
}

// tenantWays are the ways from outside to them.
func tenantWays(local bool) string {
	first, check := "0-21844", "" // of a host and two pods
	if local {
		first, check = "0-32767", "health check 32000 of tenant/web: 2 endpoints\n"
	}
	var last int
	fmt.Sscanf(first, "0-%d", &last)
	out := "flow breth0 table=1,priority=50,tcp,dl_dst=02:00:00:00:00:01,nw_dst=203.0.113.88,tp_dst=80 " +
		"actions=ct(commit,zone=64000,exec(set_field:0x2->ct_mark)),LOCAL\n" + check +
		"nb Logical_Router_Static_Route/ovn_cluster_router/dst-ip/10.96.0.88/32/169.254.0.11 in " +
		"Logical_Router/ovn_cluster_router ip_prefix=10.96.0.88/32 nexthop=169.254.0.11 output_port=rtol-blue_n1 " +
		"policy=dst-ip\n"
	for _, at := range tenantFronts {
		out += fmt.Sprintf("nft elem services/2-all/shares.v4 %s . %s -> 172.18.0.2 . 8080\n", at, first) +
			fmt.Sprintf("nft elem services/2-all/shares.v4 %s . %d-65535 -> 10.96.0.88 . 80\n", at, last+1)
	}
	if !local {
		out += elements("hidden")
	}
	return out + elements("networks") + "set egret-network-services.v4 has 10.96.0.88\n"
}

var tenantFronts = []string{"172.18.0.2 . tcp . 30999", "172.19.1.2 . tcp . 30999", "203.0.113.88 . tcp . 80"}

// elements are those of a set with all fronts.
func elements(set string) (out string) {
	for _, at := range tenantFronts {
		out += fmt.Sprintf("nft elem services/%s.v4 %s\n", set, at)
	}
	return out
}

// refusedWays are those of a Service without a network.
func refusedWays(local bool) string {
	out := "flow breth0 table=1,priority=50,tcp,dl_dst=02:00:00:00:00:01,nw_dst=203.0.113.88,tp_dst=80 " +
		"actions=ct(commit,zone=64000,exec(set_field:0x2->ct_mark)),LOCAL\n"
	if local {
		out += "health check 32000 of tenant/web: 0 endpoints\n"
	}
	return out + elements("refused")
}

// TestAnswersStayInside: what has a cluster IP as source leaves the host by a connection alone, where networks are.
func TestAnswersStayInside(t *testing.T) {
	w := tenantWorld(world.SharedGateway, false)
	const rule = "ip saddr 10.96.0.0/16 ct direction original counter drop"
	for _, want := range []bool{true, false} {
		if have := strings.Contains(compile.Full(w, all.Features()).Text(), rule); have != want {
			t.Errorf("with networks %v: the rule is there: %v", want, have)
		}
		w.DelNetwork("blue")
	}
}

// balancersOf are the load balancers of a Service, by name.
func balancersOf(s *plan.State, key string) string {
	var out []string
	for id, row := range s.NB.Rows() {
		if id.Table == "Load_Balancer" && strings.Contains(id.Name, key) {
			out = append(out, fmt.Sprintln(id.Name, "in", row.Parent.Name, row.Cols["vips"]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// linesAbout are all lines of a plan that name a Service or one of its addresses and ports, but for load balancers.
func linesAbout(s *plan.State, key string) string {
	out := ""
	for line := range strings.SplitSeq(s.Text(), "\n") {
		if strings.Contains(line, "Load_Balancer/blue_") {
			continue
		}
		for _, what := range []string{key, tenantIP.String(), tenantBalancer.String(), "30999", "32000"} {
			if strings.Contains(line, what) {
				out += line + "\n"
				break
			}
		}
	}
	return out
}

// TestNoEndpointOfOthers: a pod that has a network of its own is behind no Service of the default network on its node,
// whatever a slice says. The host's own connections come to it as its kubelet's do.
func TestNoEndpointOfOthers(t *testing.T) {
	w := tenantWorld(world.SharedGateway, false)
	s := *w.Service("tenant/web")
	s.Namespace = "ns1"
	w.SetService(&s)
	reader := compile.NewMemo(all.Features())
	check := func(want bool) {
		t.Helper()
		reader.Update(w)
		row, ok := reader.State.NB.Get(plan.RowID{Table: "Load_Balancer", Name: "Service_ns1/web_TCP_cluster"})
		if !ok || strings.Contains(fmt.Sprint(row.Cols["vips"]), inDefault.String()) != want {
			t.Errorf("have %v, want the pod %v", row, want)
		}
	}
	check(false)
	w.DelAttachment("tenant/p", "p")
	check(true) // nothing has the address
}
