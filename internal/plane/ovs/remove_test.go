package ovs

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// hostState is what MoveUplink changes of a host: links, addresses, routes, and switches in the database.
func (n *node) hostState() string {
	n.t.Helper()
	return n.run("ip -o link show | sed 's/^[0-9]*: //; s/ qlen [0-9]*//' | sort; ip -o addr show dev eth0 | "+
		"sed 's/^[0-9]*: //'; ip route show table all | sort; ip -6 route show table all | sort") +
		n.ovs.Vsctl("list-br")
}

// remove is what a node does that Egret is removed from.
func (n *node) remove() {
	n.t.Helper()
	n.run("nft delete table netdev d 2>/dev/null || :")
	must(n.t, ReturnUplink(testUplink))
	must(n.t, n.db.RemoveBridges(n.t.Context(), "eth0", "br-int", "breth0"))
	must(n.t, n.db.AwaitSwitchd(n.t.Context()))
}

// TestReturnUplink: everything is as it was before, also when it is done again, and the host is reached meanwhile.
func TestReturnUplink(t *testing.T) {
	n := newNode(t)
	n.settle()
	before := n.hostState()
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.wantMoved()
	gap := n.gap(n.remove)
	t.Logf("longest time without an answer: %v", gap)
	if gap > 500*time.Millisecond {
		t.Errorf("gap of %v, want < 0.5 s", gap)
	}
	for range 2 {
		if after := n.hostState(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		n.remove()
	}
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.wantMoved()
}

// settle waits until the kernel has given eth0 its link-local address for good.
func (n *node) settle() {
	n.t.Helper()
	for end := time.Now().Add(5 * time.Second); strings.Contains(n.run("ip -6 addr show dev eth0"), "tentative"); {
		if time.Sleep(10 * time.Millisecond); time.Now().After(end) {
			n.t.Fatal("eth0 has a tentative address")
		}
	}
}

// TestReturnUplinkIsTakenUpAfterACrash: it may end after each of its steps, and be done again.
func TestReturnUplinkIsTakenUpAfterACrash(t *testing.T) {
	n := newNode(t)
	n.settle()
	before := n.hostState()
	for _, died := range []string{
		"ip addr add 172.18.0.2/24 dev eth0", // between addresses and routes
		"ip addr add 172.18.0.2/24 dev eth0; ip route replace default via 172.18.0.1 dev eth0 metric 100",
		"ip addr del 172.18.0.2/24 dev breth0; ip addr add 172.18.0.2/24 dev eth0; " +
			"ip route add default via 172.18.0.1 dev eth0 metric 100; ip route add 192.0.2.0/24 dev eth0 metric 50",
	} {
		must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
		n.run(died)
		n.remove()
		if after := n.hostState(); after != before {
			t.Errorf("before:\n%s\nafter %s:\n%s", before, died, after)
		}
	}
}

// TestRemoveBridgesKeepsOthersPorts: a bridge that somebody has put a port on stays, with that port alone.
func TestRemoveBridgesKeepsOthersPorts(t *testing.T) {
	n := newNode(t)
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	must(t, n.db.EnsureBridge(t.Context(), Bridge{Name: "br-int", DatapathType: "netdev"}))
	own := plan.New()
	own.Ports.Put(plan.Owner{}, plan.Port{Bridge: "breth0", Name: "own0"}, plan.PortSpec{Type: "internal"})
	must(t, NewPlane(n.db).Grow(t.Context(), own))
	n.ovs.Vsctl("add-port", "breth0", "theirs0", "--", "set", "interface", "theirs0", "type=internal")
	n.ovs.Vsctl("add-port", "br-int", "tunnel0", "--", "set", "interface", "tunnel0", "type=geneve",
		"options:remote_ip=192.0.2.9")
	for range 2 {
		err := n.db.RemoveBridges(t.Context(), "eth0", "br-int", "breth0")
		if err == nil || !strings.Contains(err.Error(), "bridge breth0 has ports that are not Egret's: theirs0:") {
			t.Errorf("got %v, want an error that names breth0 and theirs0", err)
		}
		if have := strings.Fields(n.ovs.Vsctl("list-br")); !slices.Equal(have, []string{"breth0"}) {
			t.Errorf("bridges %v", have)
		}
		if have := strings.Fields(n.ovs.Vsctl("list-ports", "breth0")); !slices.Equal(have, []string{"theirs0"}) {
			t.Errorf("ports %v", have)
		}
	}
}

// TestReturnUplinkWithoutOVS: no daemon runs any more, and the host has its link back all the same.
func TestReturnUplinkWithoutOVS(t *testing.T) {
	n := newNode(t)
	n.settle()
	before := n.hostState()
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.ovs.KillVSwitchd()
	for range 2 {
		n.run("nft delete table netdev d 2>/dev/null || :")
		must(t, ReturnUplink(testUplink))
		must(t, DeleteLinks(t.Context(), n.ovs.CommandPath("ovs-dpctl"), "eth0", "breth0", "ovs-netdev", "never0"))
	}
	if gap := n.gap(func() {}); gap > 500*time.Millisecond {
		t.Errorf("no answer for %v", gap)
	}
	must(t, n.db.RemoveBridges(t.Context(), "eth0", "breth0"))
	if after := n.hostState(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestRemoveBridgesTakesTheirPorts: with a bridge its ports go, pods' and the plan's, and another bridge stays. The
// fake does the same.
func TestRemoveBridgesTakesTheirPorts(t *testing.T) {
	own := plan.New()
	own.Ports.Put(plan.Owner{}, plan.Port{Bridge: "br-int", Name: "own0"}, plan.PortSpec{Type: "internal"})
	web := PodPort{Bridge: "br-int", HostIface: "eg0", IfaceID: "n_web", Namespace: "n", Name: "web"}
	type database interface {
		AddPodPort(context.Context, PodPort) error
		PodPorts(context.Context) ([]PodPort, error)
		RemoveBridges(ctx context.Context, uplink string, names ...string) error
	}
	check := func(t *testing.T, db database, p plane.Plane, bridges func() []string) {
		must(t, p.Grow(t.Context(), own))
		must(t, db.AddPodPort(t.Context(), web))
		for range 2 {
			must(t, db.RemoveBridges(t.Context(), "eth0", "br-int", "never0"))
		}
		if have := bridges(); !slices.Equal(have, []string{"breth0"}) {
			t.Errorf("bridges %v", have)
		}
		if pods, err := db.PodPorts(t.Context()); err != nil || len(pods) > 0 {
			t.Errorf("pods' ports %v, %v", pods, err)
		}
		if err := p.Grow(t.Context(), own); plane.Refusals(err) == nil {
			t.Errorf("a port without its bridge: %v", err)
		}
	}
	t.Run("fake", func(t *testing.T) {
		f := NewFake("br-int", "breth0")
		check(t, f, f, f.BridgeNames)
	})
	t.Run("real", func(t *testing.T) {
		n := newNode(t)
		for _, name := range []string{"br-int", "breth0"} {
			must(t, n.db.EnsureBridge(t.Context(), Bridge{Name: name, DatapathType: "netdev"}))
		}
		bridges := func() []string { return strings.Fields(n.ovs.Vsctl("list-br")) }
		check(t, n.db, NewPlane(n.db), bridges)
	})
}
