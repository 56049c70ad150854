package service_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Where the one endpoint of a Service is, seen from node n1, which the packet comes to.
const (
	localPod   = "local pod"
	remotePod  = "remote pod"
	localHost  = "local host"
	remoteHost = "remote host"
)

// Who connects.
const (
	outside = "outside"
	aNode   = "node" // a process of n1's host
	aPod    = "pod"
)

// By which address: a node port, a load balancer's, an external one.
const (
	nodePort = "node port"
	ingress  = "LB IP"
	external = "external IP"
)

// cell is what becomes of a connection, in shared and in local gateway mode. {client}, {join} and {n1} and the
// endpoints' names stand for addresses; {mp0} is the management port's.
type cell struct {
	client, endpoint string
	local            bool // the external traffic policy
	shared           string
	localMode        string // "" if the same
}

// matrix of all ways into a Service. In the cluster the policy changes nothing; outside, Local keeps the client's
// address, or rejects.
var cells = []cell{
	{outside, localPod, false, "pod {local pod} at n1 as {join}", "pod {local pod} at n1 as {mp0}"},
	{outside, remotePod, false, "pod {remote pod} at n2 as {join}", "pod {remote pod} at n2 as {mp0}"},
	{outside, localHost, false, "host {local host} at n1 as {client}", ""},
	{outside, remoteHost, false, "host {remote host} at n2 as {n1}", ""},
	{outside, localPod, true, "pod {local pod} at n1 as {client}", ""},
	{outside, remotePod, true, nobodyAtRouter, nobodyAtSwitch},
	{outside, localHost, true, "host {local host} at n1 as {client}", ""},
	{outside, remoteHost, true, nobodyAtRouter, nobodyAtSwitch},

	{aNode, localPod, false, "pod {local pod} at n1 as {mp0}", ""},
	{aNode, remotePod, false, "pod {remote pod} at n2 as {mp0}", ""},
	{aNode, localHost, false, "host {local host} at n1 as {n1}", ""},
	{aNode, remoteHost, false, "host {remote host} at n2 as {n1}", ""},
	{aNode, localPod, true, "pod {local pod} at n1 as {mp0}", ""},
	{aNode, remotePod, true, "pod {remote pod} at n2 as {n1}", ""},
	{aNode, localHost, true, "host {local host} at n1 as {n1}", ""},
	{aNode, remoteHost, true, "host {remote host} at n2 as {n1}", ""},

	{aPod, localPod, false, "pod {local pod} at n1 as {client}", ""},
	{aPod, remotePod, false, "pod {remote pod} at n2 as {client}", ""},
	{aPod, localHost, false, "host {local host} at n1 as {client}", ""},
	{aPod, remoteHost, false, "host {remote host} at n2 as {n1}", ""},
	{aPod, localPod, true, "pod {local pod} at n1 as {client}", ""},
	{aPod, remotePod, true, "pod {remote pod} at n2 as {client}", ""},
	{aPod, localHost, true, "host {local host} at n1 as {client}", ""},
	{aPod, remoteHost, true, "host {remote host} at n2 as {n1}", ""},
}

const (
	nobodyAtRouter = "dropped at n1: rejected: Service_shop/web_{PROTO}_node_local_router_n1 has no backends"
	nobodyAtSwitch = "dropped at n1: rejected: Service_shop/web_{PROTO}_node_switch_n1 has no backends"
)

// TestMatrix walks a packet for every way into a Service: policy, gateway mode, endpoint, client, address, family,
// protocol. What becomes of it does not depend on the last three.
func TestMatrix(t *testing.T) {
	for _, x := range cells {
		for mode, want := range map[world.GatewayMode]string{world.SharedGateway: x.shared,
			world.LocalGateway: cmp.Or(x.localMode, x.shared)} {
			m := newMatrix(t, mode, x.endpoint, x.local)
			for _, by := range []string{nodePort, ingress, external} {
				for _, f := range []world.Family{world.V4, world.V6} {
					for _, proto := range protocols {
						t.Run(fmt.Sprintf("%s/%s/local=%t/%s/%s/%s/%s", x.client, x.endpoint, x.local, mode, by, f,
							proto), func(t *testing.T) {
							if have, want := m.send(x.client, by, f, proto), sentence(want, x.client, f,
								proto); have != want {
								t.Errorf("have %s\nwant %s", have, want)
							}
						})
					}
				}
			}
		}
	}
}

var protocols = []string{"tcp", "udp", "sctp"}

// matrix is the plans of three nodes with one Service.
type matrix struct{ net *trace.Cluster }

func newMatrix(t *testing.T, mode world.GatewayMode, endpoint string, local bool) matrix {
	t.Helper()
	plans := trace.Network{}
	for i := 1; i <= 3; i++ {
		w := compiletest.Small(fmt.Sprint("n", i), mode)
		for number, node := range map[int]string{0: "n1", 1: "n2", 3: "n1"} {
			p := compiletest.Pod(number, node)
			if w.SetPod(p); w.Self == node {
				w.SetAttachment(compiletest.Attachment(p))
			}
		}
		w.SetService(matrixService(endpoint, local))
		plans[w.Self] = compile.Full(w, all.Features())
	}
	return matrix{readPlans(t, plans)}
}

// Pods 0 and 1 are endpoints, and pod 3 is a client.
func address(what string, f world.Family) netip.Addr {
	return map[string]netip.Addr{
		localPod: compiletest.PodIPs(0, 1)[f], remotePod: compiletest.PodIPs(1, 2)[f],
		localHost: compiletest.Node(1).HostAddrs[f], remoteHost: compiletest.Node(2).HostAddrs[f],
		outside: compiletest.EgressAddr(60)[f], aPod: compiletest.PodIPs(3, 1)[f],
		ingress: compiletest.EgressAddr(70)[f], external: compiletest.EgressAddr(71)[f],
		nodePort: compiletest.Node(1).HostAddrs[f],
		aNode:    compiletest.Node(1).HostAddrs[f], "mp0": world.Nth(compiletest.Node(1).Subnets[f], 2),
		"join": compiletest.Config(world.SharedGateway).Join(2, f).Addr(), "n1": compiletest.Node(1).HostAddrs[f],
	}[what]
}

func matrixService(endpoint string, local bool) *world.Service {
	node := map[string]string{localPod: "n1", localHost: "n1", remotePod: "n2", remoteHost: "n2"}[endpoint]
	s := &world.Service{Namespace: "shop", Name: "web", ExternalLocal: local}
	for _, proto := range protocols {
		s.Ports = append(s.Ports, world.ServicePort{Protocol: proto, Port: 80, NodePort: 30080})
	}
	for _, f := range []world.Family{world.V4, world.V6} {
		s.ClusterIPs = append(s.ClusterIPs, []netip.Addr{netip.MustParseAddr("10.96.0.10"),
			netip.MustParseAddr("fd00:10:96::10")}[f])
		s.LoadBalancerIPs = append(s.LoadBalancerIPs, address(ingress, f))
		s.ExternalIPs = append(s.ExternalIPs, address(external, f))
		for i := range s.Ports {
			s.Ports[i].Endpoints = append(s.Ports[i].Endpoints,
				world.Endpoint{AddrPort: netip.AddrPortFrom(address(endpoint, f), 8080), Node: node, Ready: true,
					Serving: true})
		}
	}
	return s
}

func (m matrix) send(client, by string, f world.Family, proto string) string {
	port := map[string]uint16{nodePort: 30080, ingress: 80, external: 80}[by]
	p := trace.Packet{Src: address(client, f), Dst: address(by, f), Proto: proto, DstPort: port}
	switch client {
	case outside:
		return trace.Sentences(m.net.Arrive("n1", p))
	case aNode:
		return trace.Sentences(m.net.WalkFromHost("n1", p))
	}
	return trace.Sentences(m.net.Walk(p))
}

// sentence puts addresses and names in.
func sentence(want, client string, f world.Family, proto string) string {
	for _, what := range []string{localPod, remotePod, localHost, remoteHost, "join", "n1", "mp0"} {
		want = strings.ReplaceAll(want, "{"+what+"}", address(what, f).String())
	}
	return strings.NewReplacer("{client}", address(client, f).String(), "{PROTO}", strings.ToUpper(proto)).Replace(want)
}
