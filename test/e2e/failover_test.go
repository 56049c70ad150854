package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egret-net/egret/test/traffic"
)

// TestEstablishedSurvive: connections by addresses whose node is well survive the loss of the other addresses' node,
// its return, and the move of those addresses to a third node, the pods' own.
func TestEstablishedSurvive(t *testing.T) {
	const count = 24
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	k := keptBy(t, c.hosts[0])
	all := concat(c.number(62), c.number(63))
	e := c.egressIP(t, "established", all, n.itself(), metav1.LabelSelector{})
	where := e.ready()
	lost := where[all[0].String()]
	moves := slices.DeleteFunc(slices.Clone(all), func(ip netip.Addr) bool { return where[ip.String()] != lost })
	stays := slices.DeleteFunc(slices.Clone(all), func(ip netip.Addr) bool { return slices.Contains(moves, ip) })
	if len(moves) != len(stays) || len(moves) != len(c.hosts[0].IPs) {
		t.Fatalf("addresses on %v, want one of each family on two nodes", where)
	}
	n.runs(pod{name: "first", node: c.nodes[0]})
	spreads := func() {
		for _, to := range c.hosts[0].IPs {
			n.from("first").to(family4or6(c.outside(0), to)).spreadsOver(ofFamily(all, to)...)
		}
	}
	spreads()
	var connections []string
	for _, to := range c.hosts[0].IPs {
		n.runs(pod{name: "keeps-" + familyName(to), node: c.nodes[0], keeps: []keeps{{count: count, to: to}}})
		by := k.from(count, ofFamily(stays, to)[0], ofFamily(moves, to)[0])
		t.Logf("%d of %d connections by %s", len(by), count, ofFamily(stays, to))
		connections = append(connections, by...)
	}

	c.powerOff(t, lost)
	k.live("while the other node is away", connections)
	within(t, notReadyTimeout, func() error { return e.notOn(lost) })
	k.live("after Kubernetes noticed it", connections)
	c.powerOn(t, lost)
	e.ready()
	k.live("after the other node has returned", connections)

	c.labelEgress(t, c.nodes[0])
	lost = e.ready()[moves[0].String()]
	c.powerOff(t, lost)
	within(t, notReadyTimeout, func() error { return e.notOn(lost) })
	where = e.ready()
	for _, ip := range moves {
		if at := where[ip.String()]; at != c.nodes[0].Name {
			t.Fatalf("%s is on %s, want %s", ip, at, c.nodes[0].Name)
		}
	}
	k.live("with the other addresses on the pods' node", connections)
	c.powerOn(t, lost)
	spreads()
	k.live("at the end", connections)
}

func familyName(ip netip.Addr) string {
	if ip.Is4() {
		return "v4"
	}
	return "v6"
}

// ofFamily are the addresses of like's family.
func ofFamily(ips []netip.Addr, like netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool { return ip.Is4() != like.Is4() })
}

// TestFailoverWithoutControlPlane: the power of one of two hosting nodes goes while neither the API server nor its
// controllers run. The pods' nodes find out by themselves: all new connections go by the other, and by the first again
// when it is back.
func TestFailoverWithoutControlPlane(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	ips := concat(c.number(64), c.number(65))
	e := c.egressIP(t, "alone", ips, n.itself(), metav1.LabelSelector{})
	where := e.ready()
	seen := c.capture(t)
	// OVN chooses by source and destination: enough of both that some go by each node
	for _, p := range []string{"a", "b", "c", "d"} {
		n.runs(pod{name: p, node: c.nodes[0], sends: true})
	}
	to := concat(c.hosts[0].IPs, c.hosts[1].IPs)
	seen.allSteady(soon, to, ips)
	c.sessionsUp(t, c.nodes[0].Name, 2)
	before := seen.ways()
	lost := usedByBoth(before, where)
	if lost == "" {
		t.Fatalf("no node has connections of each family: %v", before)
	}
	left := slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool { return where[ip.String()] == lost })

	if err := c.StopControlPlane(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := func() {
		if err := c.StartControlPlane(context.Background()); err != nil {
			t.Error(err)
		}
		c.sameServer(t)
	}
	t.Cleanup(start)
	begin := time.Now()
	c.powerOff(t, lost)
	seen.allSteady(soon, to, left)
	t.Logf("%s", seen.lost(begin.Add(-100*time.Millisecond)))
	start()
	c.powerOn(t, lost)
	within(t, notReadyTimeout, func() error {
		if now := seen.ways(); !maps.Equal(now, before) {
			return fmt.Errorf("connections go by %v, want %v", now, before)
		}
		return nil
	})
	seen.onlyFrom(n, ips)
}

// usedByBoth is a node by which connections of both families go, or of the only one that hosts outside have; "" if
// there is none.
func usedByBoth(ways map[traffic.Flow]netip.Addr, where map[string]string) string {
	families, used := map[bool]bool{}, map[string]map[bool]bool{}
	for _, ip := range ways {
		node := where[ip.String()]
		if used[node] == nil {
			used[node] = map[bool]bool{}
		}
		used[node][ip.Is4()], families[ip.Is4()] = true, true
	}
	for _, node := range slices.Sorted(maps.Keys(used)) {
		if len(used[node]) == len(families) {
			return node
		}
	}
	return ""
}

// ways are the sources of new connections of the last second, the latest of each.
func (s *capture) ways() map[traffic.Flow]netip.Addr {
	out := map[traffic.Flow]netip.Addr{}
	for _, x := range s.Since(time.Now().Add(-time.Second)) {
		if x.Kind == "new" {
			out[x.Flow()] = x.Src
		}
	}
	return out
}

// allSteady waits until new connections to all of these addresses are steady, with these sources of the same family.
func (s *capture) allSteady(limit time.Duration, to, want []netip.Addr) {
	s.t.Helper()
	for _, ip := range to {
		within(s.t, limit, func() error { return s.steady(ip, ofFamily(want, ip)...) })
	}
}

// of are the new connections to an address.
func (s *capture) of(to netip.Addr) []traffic.Sighting {
	return slices.DeleteFunc(s.Since(time.Time{}),
		func(x traffic.Sighting) bool { return x.Dst != to || x.Kind != "new" })
}

// steady is nil if of the last second no new connection to an address was lost, and all came from one of these sources.
// OVS does not count UDP's ports among what it chooses a next hop by: all datagrams of a pod to one address leave by
// the same.
func (s *capture) steady(to netip.Addr, want ...netip.Addr) error {
	all, begin := s.of(to), time.Now().Add(-time.Second)
	all = slices.DeleteFunc(all, func(x traffic.Sighting) bool { return x.At.Before(begin) })
	for _, x := range all {
		if !slices.Contains(want, x.Src) {
			return fmt.Errorf("%s leaves as %s, want %v", x.Pod, x.Src, want)
		}
	}
	if l := traffic.Lost(all); len(all) < 20 || l.Total > 0 {
		return fmt.Errorf("%d datagrams to %s in a second, %s", len(all), to, l)
	}
	return nil
}

// sessionsUp waits until so many others answer a node.
func (c *cluster) sessionsUp(t *testing.T, node string, count int) {
	t.Helper()
	within(t, soon, func() error {
		if up := strings.Count(c.on(t, node, "ovs-vsctl", "--columns=bfd_status", "find", "Interface",
			"bfd_status:state=up"), "state=up"); up < count {
			return fmt.Errorf("node %s has %d sessions that are up, want %d", node, up, count)
		}
		return nil
	})
}

// powerOff cuts a node's power; the node is on and Ready again when the test ends.
func (c *cluster) powerOff(t *testing.T, node string) {
	t.Helper()
	if err := c.PowerOff(node); err != nil {
		t.Fatal(err)
	}
	off := time.Now()
	t.Cleanup(func() {
		if err := c.PowerOn(context.Background(), node); err != nil {
			t.Error(err)
		}
		within(t, podsTimeout, func() error { return c.isReadySince(node, off) })
	})
}

// powerOn boots a node and waits until Kubernetes has it Ready.
func (c *cluster) powerOn(t *testing.T, node string) {
	t.Helper()
	on := time.Now()
	if err := c.PowerOn(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	within(t, podsTimeout, func() error { return c.isReadySince(node, on) })
}

// notOn is nil if a node hosts nothing of an EgressIP.
func (e egressIP) notOn(node string) error {
	o, err := e.get()
	if err != nil {
		return err
	}
	for ip, at := range nodesOf(o) {
		if at == node {
			return fmt.Errorf("%s is still on node %s", ip, node)
		}
	}
	return nil
}

// sameServer: the API server is where it was when this program's clients were made; else they would find nobody.
func (c *cluster) sameServer(t *testing.T) {
	t.Helper()
	now, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	must(t, err)
	if now.Host != c.config.Host {
		t.Errorf("the API server is at %s now, and was at %s", now.Host, c.config.Host)
	}
}
