package host

import (
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plane/planetest"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// run carries out commands of ip(8), one a line.
func run(t *testing.T, commands string) {
	t.Helper()
	for _, c := range strings.Split(strings.TrimSpace(commands), "\n") {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", c, err, out)
		}
	}
}

const uplinkUp = `link add eth0 type bridge
link add breth0 type bridge
link set lo up
link set breth0 up`

// TestVirtualAddressIsNotTheNodes: whatever else the uplink has, before or after, the node's own address is what it
// was.
func TestVirtualAddressIsNotTheNodes(t *testing.T) {
	const own = "addr add 172.18.0.20/16 dev breth0\naddr add fc00:18::20/64 dev breth0 nodad"
	const gateways = "route add default via 172.18.0.1 dev breth0\n-6 route add default via fc00:18::1 dev breth0"
	for name, x := range map[string]struct{ before, after string }{
		"alone": {},
		"in the subnet, after": {after: "addr add 172.18.0.2/16 dev breth0\naddr add fc00:18::2/64 dev " +
			"breth0 nodad"},
		"in no subnet, after": {after: "addr add 172.18.0.2/32 dev breth0\naddr add fc00:18::2/128 dev " +
			"breth0 nodad"},
		"in no subnet, before": {before: "addr add 172.18.0.2/32 dev breth0\naddr add fc00:18::2/128 dev " +
			"breth0 nodad"},
		"in another subnet, before": {before: "addr add 10.1.0.2/16 dev breth0\naddr add fc00:17::2/64 dev breth0 " +
			"nodad"},
		"deprecated, before": {before: "addr add fc00:18::2/64 dev breth0 nodad preferred_lft 0"},
		"named by the default route": {before: "addr add 172.18.0.2/16 dev breth0",
			after: "route change default via 172.18.0.1 dev breth0 src 172.18.0.20"},
		"on the device, with its /128": {after: "addr add 172.18.0.2/32 dev eth0\naddr add fc00:18::2/128 dev eth0 " +
			"nodad"},
	} {
		t.Run(name, func(t *testing.T) {
			planetest.OwnNetns(t)
			run(t, strings.Join(slices.DeleteFunc([]string{uplinkUp, x.before, own, gateways, x.after},
				func(s string) bool { return s == "" }), "\n"))
			if have, want := primaries(t, nil), "172.18.0.20/16 fc00:18::20/64"; have != want {
				t.Errorf("the node's own are %s, want %s", have, want)
			}
		})
	}
}

// TestKubeletsAddress: what the kubelet says goes before what the kernel prefers, if the uplink has it.
func TestKubeletsAddress(t *testing.T) {
	planetest.OwnNetns(t)
	run(t, uplinkUp+`
		addr add 172.18.0.2/16 dev breth0
		addr add 172.18.0.20/16 dev breth0
		addr add fc00:18::20/64 dev breth0 nodad
		addr add fc00:18::2/64 dev breth0 nodad`)
	for told, want := range map[string]string{
		"":                                "172.18.0.2/16 fc00:18::20/64",
		"172.18.0.20":                     "172.18.0.20/16 fc00:18::20/64",
		"fc00:18::2 192.0.2.9":            "172.18.0.2/16 fc00:18::2/64",
		"192.0.2.9 172.18.0.20 10.0.0.10": "172.18.0.20/16 fc00:18::20/64",
	} {
		if have := primaries(t, strings.Fields(told)); have != want {
			t.Errorf("the kubelet tells %q: the node's own are %s, want %s", told, have, want)
		}
	}
}

// primaries are the addresses that a world of this host and of what the kubelet tells takes as the node's own.
func primaries(t *testing.T, told []string) string {
	t.Helper()
	h, err := route.ReadHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := compiletest.Small("n1", world.SharedGateway)
	n := compiletest.Node(1)
	for _, ip := range told {
		n.InternalIPs = append(n.InternalIPs, netip.MustParseAddr(ip))
	}
	w.SetHost(Facts(h, w.Config, nil))
	w.SetNode(n)
	var out []string
	for _, p := range w.Host().Primary {
		out = append(out, p.String())
	}
	return strings.Join(out, " ")
}
