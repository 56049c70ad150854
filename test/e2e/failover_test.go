package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/test/traffic"
)

// TestEstablishedSurvive: connections by an address whose node is well survive the loss of the other address' node, its return, and the move of that
// address to a third node, the pod's own.
func TestEstablishedSurvive(t *testing.T) {
	const count = 24
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	k := keptBy(t, c.hosts[0])
	stays, moves := c.number(62)[0], c.number(63)[0]
	e := c.egressIP(t, "established", []netip.Addr{stays, moves}, n.itself(), metav1.LabelSelector{})
	where := e.ready()
	n.runs(pod{name: "first", node: c.nodes[0]})
	n.from("first").to(family4or6(c.outside(0), stays)).spreadsOver(stays, moves)
	n.runs(pod{name: "a", node: c.nodes[0], keeps: count})
	connections := k.from(count, stays, moves)
	t.Logf("%d of %d connections by %s", len(connections), count, stays)

	lost := where[moves.String()]
	c.powerOff(t, lost)
	k.live("while the other node is away", connections)
	within(t, notReadyTimeout, func() error { return e.notOn(lost) })
	k.live("after Kubernetes heard of it", connections)
	c.powerOn(t, lost)
	e.ready()
	k.live("after the other node has returned", connections)

	c.labelEgress(t, c.nodes[0])
	lost = e.ready()[moves.String()]
	c.powerOff(t, lost)
	within(t, notReadyTimeout, func() error { return e.notOn(lost) })
	if at := e.ready()[moves.String()]; at != c.nodes[0].Name {
		t.Fatalf("%s is on %s, want %s", moves, at, c.nodes[0].Name)
	}
	k.live("with the other address on the pod's node", connections)
	c.powerOn(t, lost)
	n.from("a").to(family4or6(c.outside(0), stays)).spreadsOver(stays, moves)
	k.live("at the end", connections)
}

// TestFailoverWithoutControlPlane: the power of one of two hosting nodes goes while neither the API server nor its controllers run. The pods' nodes
// find out by themselves: all new connections go by the other, and by the first again when it is back.
func TestFailoverWithoutControlPlane(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	ips := []netip.Addr{c.number(64)[0], c.number(65)[0]}
	e := c.egressIP(t, "alone", ips, n.itself(), metav1.LabelSelector{})
	where := e.ready()
	seen := c.capture(t)
	n.runs(pod{name: "a", node: c.nodes[0], sends: true})
	to := c.hosts[0].IPs[0]
	within(t, soon, func() error { return seen.steady(to, ips...) })
	c.sessionsUp(t, c.nodes[0].Name, 2)
	lost := seen.last(to)
	left := ips[1-slices.Index(ips, lost)]

	if err := c.StopControlPlane(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := func() {
		if err := c.StartControlPlane(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(start)
	begin := time.Now()
	c.powerOff(t, where[lost.String()])
	within(t, soon, func() error { return seen.steady(to, left) })
	t.Logf("%s", seen.lost(begin.Add(-100*time.Millisecond)))
	start()
	c.powerOn(t, where[lost.String()])
	within(t, notReadyTimeout, func() error { return seen.steady(to, lost) })
	if wrong := traffic.Wrong(seen.of(to), n.name+"/", ips); len(wrong) > 0 {
		t.Errorf("datagrams with a wrong source: %v; want %v", wrong, ips)
	}
}

// of are the new connections to an address.
func (s *capture) of(to netip.Addr) []traffic.Sighting {
	return slices.DeleteFunc(s.Since(time.Time{}), func(x traffic.Sighting) bool { return x.Dst != to || x.Kind != "new" })
}

// steady is nil if of the last second no new connection to an address was lost, and all came from one of these sources. OVS does not count UDP's ports
// among what it chooses a next hop by: all datagrams of a pod to one address leave by the same.
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

// last is the source of the last that was seen.
func (s *capture) last(to netip.Addr) netip.Addr {
	all := s.of(to)
	return all[len(all)-1].Src
}

// sessionsUp waits until a node hears so many others.
func (c *cluster) sessionsUp(t *testing.T, node string, count int) {
	t.Helper()
	within(t, soon, func() error {
		if up := strings.Count(c.on(t, node, "ovs-vsctl", "--columns=bfd_status", "find", "Interface", "bfd_status:state=up"), "state=up"); up < count {
			return fmt.Errorf("node %s has %d sessions that are up, want %d", node, up, count)
		}
		return nil
	})
}

// powerOff cuts a node's power; the node is on again when the test ends.
func (c *cluster) powerOff(t *testing.T, node string) {
	t.Helper()
	if err := c.PowerOff(node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.PowerOn(context.Background(), node); err != nil {
			t.Error(err)
		}
	})
}

// powerOn boots a node and waits until Kubernetes has it Ready.
func (c *cluster) powerOn(t *testing.T, node string) {
	t.Helper()
	if err := c.PowerOn(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	within(t, podsTimeout, func() error { return c.isReady(node) })
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
