package vm

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// The VRF lab: a pod of another node, steered to this node's management port; this node; a host on a network whose link is in a VRF, with
// a further network behind it that only the VRF's table knows.
const (
	vrfPod    = "10.244.9.5"
	vrfEgress = "10.50.0.77"
	vrfHost   = "10.50.0.100"
	vrfBehind = "198.51.100.1"
	vrfServer = 8080
)

// TestVRF: the rows that an egress IP on a link in a VRF asks for (mark, rule, table, translation), carried out by the product's planes, bring
// a pod's packet out by that link and its reply back. Without the rule for replies, which has to come before the VRF's own, there is none.
func TestVRF(t *testing.T) {
	options(t) // skips elsewhere
	l := newVRFLab(t)
	// The VRF's table has a cluster-wide default: what the management port's own route does not answer is lost there.
	l.apply(l.rows())
	for _, server := range []string{vrfHost, vrfBehind} {
		have, err := l.ask(server)
		if err != nil || have != vrfEgress {
			t.Errorf("pod to %s: seen as %q, %v, want %s", server, have, err, vrfEgress)
		}
	}
	rows := l.rows()
	delete(rows.Rules, l.replyRule())
	l.apply(rows)
	if have, err := l.ask(vrfHost); err == nil {
		t.Errorf("without the rule for replies the pod is still answered: seen as %q", have)
	}
	l.apply(&plan.Rows{})
	if rules := run(t, "ip", "rule"); strings.Contains(rules, "fwmark") {
		t.Errorf("rules are left:\n%s", rules)
	}
}

type vrfLab struct {
	t      *testing.T
	index  int // of the link
	planes []plane.Plane
}

// newVRFLab makes the three namespaces, and leaves the test in the node's: its thread dies with it.
func newVRFLab(t *testing.T) *vrfLab {
	runtime.LockOSThread()
	for _, name := range []string{"vrfpod", "vrfhost"} {
		run(t, "ip", "netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	for _, line := range vrfCommands() {
		run(t, strings.Fields(line)...)
	}
	link, err := net.InterfaceByName("sec0")
	if err != nil {
		t.Fatal(err)
	}
	serveIn(t, "vrfhost", netip.AddrPortFrom(netip.IPv4Unspecified(), vrfServer))
	l := &vrfLab{t: t, index: link.Index}
	routes, err := route.New(route.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := nft.Open()
	if err != nil {
		t.Fatal(err)
	}
	l.planes = []plane.Plane{routes, rules}
	return l
}

func vrfCommands() []string {
	return []string{
		"sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.default.rp_filter=2",
		"ip link set lo up",
		"ip link add " + world.ManagementPort + " type veth peer name eth0 netns vrfpod",
		"ip addr add 10.244.0.2/24 dev " + world.ManagementPort,
		"ip link set " + world.ManagementPort + " up",
		"ip route add 10.244.0.0/16 via 10.244.0.1 dev " + world.ManagementPort,
		"ip link add red type vrf table 10",
		"ip link set red up",
		"ip link add sec0 type veth peer name eth0 netns vrfhost",
		"ip link set sec0 master red up",
		"ip addr add 10.50.0.1/24 dev sec0",
		"ip route add default via " + vrfHost + " table 10",
		// The pod's namespace is OVN's router and the pod in one.
		"ip -n vrfpod link set lo up", "ip -n vrfpod link set eth0 up", "ip -n vrfpod addr add 10.244.0.1/24 dev eth0",
		"ip -n vrfpod addr add " + vrfPod + "/32 dev lo", "ip -n vrfpod route add default via 10.244.0.2 src " + vrfPod,
		"ip -n vrfhost link set lo up", "ip -n vrfhost link set eth0 up", "ip -n vrfhost addr add " + vrfHost + "/24 dev eth0",
		"ip -n vrfhost addr add " + vrfBehind + "/32 dev lo",
	}
}

// rows are those of design "Secondary interface, on the host", for one EgressIP.
func (l *vrfLab) rows() *plan.Rows {
	table, mark := 1000+l.index, fmt.Sprintf("0x%08x", l.mark())
	pre, post := plan.NFTChain{Family: "inet", Name: "egress"}, plan.NFTChain{Family: "inet", Name: "egress-nat"}
	dst := netip.MustParsePrefix
	return &plan.Rows{
		Addrs: map[plan.Addr]plan.AddrSpec{{Dev: "sec0", Prefix: dst(vrfEgress + "/32")}: {Deprecated: true}},
		Routes: map[plan.RouteKey]plan.Route{ // copied from the VRF's table
			{Table: table, Dst: dst("10.50.0.0/24")}: {Dev: "sec0"},
			{Table: table, Dst: dst("0.0.0.0/0")}:    {Dev: "sec0", Via: netip.MustParseAddr(vrfHost)},
		},
		Rules: map[plan.Rule]plan.None{
			l.replyRule(): {},
			{Priority: 6000, Table: table, Mark: l.mark(), Mask: 0xffffffff, Src: dst("10.244.0.0/16")}: {},
		},
		Sysctls:   map[plan.Sysctl]string{{Key: "net.ipv4.conf." + world.ManagementPort + ".src_valid_mark"}: "1"},
		NFTSets:   map[plan.NFTSet]plan.NFTSetSpec{{Name: "web"}: {Key: "ipv4_addr"}},
		NFTElems:  map[plan.NFTElem]string{{Set: "web", Key: vrfPod}: ""},
		NFTChains: map[plan.NFTChain]plan.NFTChainSpec{pre: {Type: "filter", Hook: "prerouting", Priority: "mangle"}, post: {Type: "nat", Hook: "postrouting", Priority: "srcnat"}},
		NFTRules: map[plan.NFTRule]string{
			{Chain: pre, Name: "10 mark"}: fmt.Sprintf("iifname %q ip saddr @web meta mark set %s", world.ManagementPort, mark),
			{Chain: post, Name: "10 web"}: "oifname \"sec0\" ip saddr @web snat ip to " + vrfEgress,
		},
	}
}

// mark is that of the link: its index in the low bytes.
func (l *vrfLab) mark() uint32 { return 0x0e000000 | uint32(l.index) }

// replyRule sends what is for pods to the main table, before the kernel's rule 1000 looks into the VRF's.
func (l *vrfLab) replyRule() plan.Rule {
	return plan.Rule{Priority: 999, Table: 254, Dst: netip.MustParsePrefix("10.244.0.0/16")}
}

func (l *vrfLab) apply(r *plan.Rows) {
	l.t.Helper()
	s := plan.New()
	s.Replace("egressip/web", &plan.Rows{}, r)
	if err := plane.Apply(l.t.Context(), l.planes, s); err != nil {
		l.t.Fatal(err)
	}
}

// ask is the address that a server sees of the pod.
func (l *vrfLab) ask(server string) (string, error) {
	url := fmt.Sprintf("http://%s:%d/clientip", server, vrfServer)
	out, err := exec.Command("ip", "netns", "exec", "vrfpod", "curl", "-sS", "--max-time", "10", url).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	host, _, err := net.SplitHostPort(strings.TrimSpace(string(out)))
	l.t.Logf("pod %s is seen by %s as %s", vrfPod, server, host)
	return host, err
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}
