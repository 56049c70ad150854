package e2e

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
)

// linkLocal: a pod of the default network reaches a server at a link-local address of its host, as NodeLocal
// DNSCache is, on a node with networks. A pod of a network does not, and no pod of the default network reaches the
// masquerade address of a network, where the network's gateway router answers pings.
func (n *tenant) linkLocal(t *testing.T, plain *namespace) {
	i := slices.IndexFunc(n.c.nodes[0].IPs, netip.Addr.Is4)
	if i < 0 {
		return
	}
	node, cache := n.c.nodes[0], netip.MustParseAddr("169.254.20.10")
	on := cache.String() + "/32"
	n.c.on(t, node.Name, "ip", "address", "add", on, "dev", "lo")
	t.Cleanup(func() {
		_, _ = n.c.feed(context.Background(), node.Name, nil, "ip", "address", "delete", on, "dev", "lo")
	})
	at := endpoint{"a link-local address of " + node.Name, []netip.Addr{cache}, nodePort}
	plain.from("plain-0").to(at).soonArrivesAs(plain.ips["plain-0"][i])
	areShut(n.from("blue-0").to(at))
	names := plan.Names{Network: n.name + "_" + n.network}
	out := n.c.on(t, node.Name, "ovn-nbctl", "get", "Logical_Router_Port", names.GatewayToExternal(node.Name),
		"networks")
	for _, text := range strings.FieldsFunc(out, func(r rune) bool { return strings.ContainsRune("[]\", \n", r) }) {
		ip := netip.MustParsePrefix(text).Addr()
		out, err := plain.exec(t.Context(), "plain-0", "ping -c2 -W1 "+ip.String())
		if err == nil || !strings.Contains(out+err.Error(), "100% packet loss") {
			t.Errorf("a pod of the default network pings %s: %s, %v", ip, out, err)
		}
	}
}
