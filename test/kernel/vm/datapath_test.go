package vm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

var (
	selected  = map[string]string{"app": "web"}
	egressIPs = []netip.Addr{netip.MustParseAddr("172.18.0.77"), netip.MustParseAddr("fc00:f853:ccd:e793::77")}
)

const nodePort = 7070 // of a server on each node

// kernelLab is a cluster of two zones with one EgressIP, which the second node holds.
type kernelLab struct {
	*cluster
	far, near, plain pod          // selected and not on the holder; selected and on it; not selected
	outside          []netip.Addr // a host's
}

// part is one thing that a lab shows.
type part struct {
	name string
	run  func(*kernelLab)
}

// TestKernelDatapath: the product's programs with OVS' kernel datapath, from the agent's start to its packets.
func TestKernelDatapath(t *testing.T) {
	kernelTest(t, sandbox.Shared, asTheyAre, []part{
		{"BridgesAreTheKernels", (*kernelLab).bridges},
		{"SourceAddresses", (*kernelLab).sources},
		{"GeneveIsTheKernels", (*kernelLab).geneve},
		{"NodesSeeTheNodesAddress", (*kernelLab).nodeMark},
		{"RepliesOfInboundConnections", (*kernelLab).replies},
		{"LargeDatagrams", (*kernelLab).datagrams},
		{"Pings", (*kernelLab).pings},
		{"TooBig", (*kernelLab).tooBig},
		{"PathMTU", (*kernelLab).pathMTU},
		{"Policies", (*kernelLab).policies},
		{"LocalByLink", (*kernelLab).byLink},
		{"SessionAffinity", (*kernelLab).sticky},
		{"LostFirst", (*kernelLab).lostFirst},
		{"BegunEarly", (*kernelLab).early},
		{"ByTraffic", (*kernelLab).byTraffic},
		{"EgressService", (*kernelLab).plainService},
		{"VRF", (*kernelLab).vrf},
		{"VRFOfEgressService", (*kernelLab).egressService},
		{"SCTP", (*kernelLab).sctp},
		{"Moves", (*kernelLab).moves},
		{"Restarts", (*kernelLab).restarts},
		{"FailoverByLease", (*kernelLab).lease},
		{"FailoverByBFD", (*kernelLab).bfd},
		{"NodeGroupOfV2", (*kernelLab).cgroup},
	})
}

// TestKernelDatapathLocal: the same where pods leave through the host.
func TestKernelDatapathLocal(t *testing.T) {
	kernelTest(t, sandbox.Local, asTheyAre, []part{
		{"SourceAddresses", (*kernelLab).sources},
		{"NodesSeeTheNodesAddress", (*kernelLab).nodeAddresses},
		{"TooBig", (*kernelLab).tooBig},
		{"PathMTU", (*kernelLab).pathMTU},
		{"Policies", (*kernelLab).policies},
		{"LocalByLink", (*kernelLab).byLink},
		{"ByTraffic", (*kernelLab).byTraffic},
		{"EgressService", (*kernelLab).plainService},
		{"VRF", (*kernelLab).vrf},
		{"VRFOfEgressService", (*kernelLab).egressService},
		{"Moves", (*kernelLab).moves},
		{"Restarts", (*kernelLab).restarts},
		{"FailoverByLease", (*kernelLab).lease},
		{"FailoverByBFD", (*kernelLab).bfd},
	})
}

// asTheyAre leaves a node's links alone: its uplink is one side of a veth pair.
func asTheyAre(*cluster, sandbox.Member) {}

func kernelTest(t *testing.T, mode sandbox.GatewayMode, prepare func(*cluster, sandbox.Member), parts []part) {
	c := start(t, mode, prepare)
	c.namespace()
	c.egressIP("web", egressIPs, c.nodes[1], selected)
	l := kernelLab{cluster: c, outside: c.ExternalHosts()[0].IPs}
	l.far, l.near, l.plain = c.pod("far", c.nodes[0], selected), c.pod("near", c.nodes[1], selected),
		c.pod("plain", c.nodes[0], nil)
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			own := *c
			own.t = t
			lab := l
			lab.cluster = &own
			lab.far.c, lab.near.c, lab.plain.c = &own, &own, &own
			part.run(&lab)
		})
	}
}

func (l *kernelLab) bridges() {
	for _, n := range l.nodes {
		for _, bridge := range []string{"br-int", "breth0"} {
			if have := strings.Trim(l.in(n.Name, "ovs-vsctl", "get", "bridge", bridge, "datapath_type"),
				"\"\n"); have != "system" {
				l.t.Errorf("%s of %s has datapath %q, want the kernel's", bridge, n.Name, have)
			}
		}
	}
	l.t.Log("\n" + l.in(l.nodes[0].Name, "ovs-appctl", "dpif/show"))
}

func (l *kernelLab) sources() {
	l.far.isSeenAs(egressIPs, l.outside, sandbox.ClientIPPort)
	l.near.isSeenAs(egressIPs, l.outside, sandbox.ClientIPPort)
	l.plain.isSeenAs(l.nodes[0].IPs, l.outside, sandbox.ClientIPPort)
}

// geneve: what the pod that is not on the holder sent went through the kernel's tunnel device.
func (l *kernelLab) geneve() {
	const counter = "/sys/class/net/genev_sys_6081/statistics/tx_packets"
	sent := func() string { return strings.TrimSpace(l.in(l.nodes[0].Name, "cat", counter)) }
	before := sent()
	l.far.isSeenAs(egressIPs, l.outside, sandbox.ClientIPPort)
	if after := sent(); after == before {
		l.t.Errorf("genev_sys_6081 has sent %s packets before and after", after)
	}
}

// nodeAddresses: selected pods reach nodes with their own node's address, and their own node with their own.
func (l *kernelLab) nodeAddresses() {
	for _, n := range l.nodes {
		for _, ip := range n.IPs {
			serveIn(l.t, n.Name, netip.AddrPortFrom(ip, nodePort))
		}
	}
	first, second := l.nodes[0].IPs, l.nodes[1].IPs
	l.far.isSeenAs(first, second, nodePort)
	l.near.isSeenAs(second, first, nodePort)
	l.far.isSeenAs(l.far.ips(), first, nodePort)
}

// nodeMark: the mark that asks for the node's address is the kernel's skb mark here.
func (l *kernelLab) nodeMark() {
	l.in(l.nodes[0].Name, "nft",
		"add table netdev watch; add chain netdev watch out { type filter hook egress device eth0 priority 0; }; "+
			"add rule netdev watch out meta mark 1008 counter")
	l.nodeAddresses()
	if flows := l.in(l.nodes[0].Name, "ovs-ofctl", "dump-flows", "breth0",
		"table=0,pkt_mark=0x3f0"); strings.Contains(flows, "n_packets=0,") {
		l.t.Errorf("the flow for mark 1008 saw nothing:\n%s", flows)
	}
	if have := l.in(l.nodes[0].Name, "nft", "list", "chain", "netdev", "watch", "out"); !strings.Contains(have,
		"counter packets") || strings.Contains(have, "packets 0 ") {
		l.t.Errorf("no packet left with skb mark 1008:\n%s", have)
	}
}

// replies: a selected pod's answer to a host outside that connected to it goes back the way the connection came, by
// mark 42, though the pod's own connections leave by another node. With another mark the answer is lost.
func (l *kernelLab) replies() {
	node, ip := l.nodes[0].Name, l.far.ips()[0]
	l.service("web", netip.MustParseAddr("10.96.0.20"), netip.AddrPortFrom(ip, sandbox.ClientIPPort),
		corev1.ProtocolTCP)
	serveInPod(l.far)
	// The product lets nobody outside connect to pods' own addresses: two flows of the test's do.
	l.in(node, "ovs-ofctl", "add-flow", "breth0",
		fmt.Sprintf("table=1,priority=20,tcp,nw_dst=%s,actions=output:%s", ip, l.patchPort(node)))
	l.in(node, "ovs-ofctl", "add-flow", "breth0",
		fmt.Sprintf("table=0,priority=115,tcp,nw_src=%s,actions=output:eth0", ip))
	host := l.ExternalHosts()[0]
	l.in(host.Name, "ip", "route", "add", ip.String(), "via", l.nodes[0].IPs[0].String())
	at := netip.AddrPortFrom(ip, sandbox.ClientIPPort)
	ask := func(ctx context.Context) error {
		_, err := l.ask(ctx, host.Name, at)
		return err
	}
	l.eventually("connection from outside to selected pod", ask)
	other := []string{node, "from-lport", "200", "ip4.src == " + ip.String() + " && ct.trk && ct.rpl"}
	l.in(node, append(append([]string{"ovn-nbctl", "qos-add"}, other...), "mark=7")...)
	l.eventually("loss of replies with another mark", func(ctx context.Context) error {
		if ask(ctx) == nil {
			return errors.New("still answered")
		}
		return nil
	})
	// What comes after this has replies of the same pod, and wants the product's mark.
	l.in(node, append([]string{"ovn-nbctl", "qos-del"}, other...)...)
	l.eventually("connection from outside to selected pod, again", ask)
}

// serveInPod runs the hosts' own server in a pod, as a container would: with the loopback interface up, as runtimes
// have it. Go takes a namespace that cannot bind ::1 for one without IPv6.
func serveInPod(p pod) {
	p.c.in(p.node.Name, "sh", "-c", "ip -n "+p.name+" link set lo up && ip netns exec "+p.name+
		" /opt/egret/bin/egret-sandbox serve-clientip >/dev/null 2>&1 &")
}

// patchPort is the number of the gateway bridge's port to OVN.
func (l *kernelLab) patchPort(node string) string {
	return strings.TrimSpace(l.in(node, "ovs-vsctl", "get", "interface", "patch-breth0_"+node+"-to-br-int", "ofport"))
}
