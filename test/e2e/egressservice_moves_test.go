package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/traffic"
)

// TestEgressServiceUnanswered: pods send datagrams that nobody ever answers, on flows that began before any of the
// changes: a host is elected, another one, each node becomes it, one again, and the EgressService goes. From when each
// is Ready on, no datagram has a former source, and every flow goes on.
func TestEgressServiceUnanswered(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	seen := c.capture(t)
	nobody := selects(map[string]string{"kubernetes.io/hostname": "nobody"})
	s := newBehindService(t, 70, v1.EgressServiceSpec{NodeSelector: nobody})
	ips := s.b.balancer.ips
	s.until("Ready", "False", "NoMatchingNode")
	s.flows(seen, time.Now())

	s.moveTo(c.nodes[0])
	s.readyOn(c.nodes[0].Name)
	begun := time.Now()
	s.flows(seen, begun)
	s.moveTo(c.nodes[1])
	s.readyOn(c.nodes[1].Name)
	s.flows(seen, time.Now())
	s.only(seen, begun, ips)

	s.patch(`{"spec":{"sourceIPBy":"Network"}}`)
	s.readyOn("ALL")
	begun = time.Now().Add(outOfUse) // flows that began before go on until they are ended
	s.flows(seen, begun)
	s.only(seen, begun, nil)

	s.patch(`{"spec":{"sourceIPBy":"LoadBalancerIP"}}`)
	s.moveTo(c.nodes[2])
	s.readyOn(c.nodes[2].Name)
	begun = time.Now().Add(outOfUse)
	s.flows(seen, begun)
	s.only(seen, begun, ips)

	s.deletes()
	within(t, soon, s.nothingLeft)
	begun = time.Now().Add(outOfUse)
	s.flows(seen, begun)
	s.only(seen, begun, nil)
}

// flows waits until every pod's datagrams, also of the flow that it began with, come by on the way to all hosts outside
// after a time.
func (s behindService) flows(seen *capture, after time.Time) {
	s.Helper()
	within(s.T, soon, func() error {
		count := map[traffic.Flow]int{}
		for _, x := range seen.Since(after) {
			count[x.Flow()]++
		}
		for _, p := range behindPods {
			for _, kind := range []string{"new", "old"} {
				for _, to := range s.outsideIPs() {
					if f := (traffic.Flow{Pod: s.n.name + "/" + p, Kind: kind, Dst: to}); count[f] < 5 {
						return fmt.Errorf("%d datagrams of kind %s of pod %s to %s", count[f], f.Kind, f.Pod, f.Dst)
					}
				}
			}
		}
		return nil
	})
}

func (s behindService) outsideIPs() (out []netip.Addr) {
	for _, h := range s.c.hosts {
		out = append(out, h.IPs...)
	}
	return out
}

// only says that no datagram has had another source since a time; nil is the pod's node's address.
func (s behindService) only(seen *capture, since time.Time, ips []netip.Addr) {
	s.Helper()
	for i, p := range behindPods {
		want := ips
		if want == nil {
			want = s.c.nodes[i].IPs
		}
		of := slices.DeleteFunc(seen.Since(since), func(x traffic.Sighting) bool { return x.Pod != s.n.name+"/"+p })
		wrong := slices.DeleteFunc(of, func(x traffic.Sighting) bool { return slices.Contains(want, x.Src) })
		if n := len(wrong); n > 0 {
			o, err := s.get()
			s.Errorf("%d datagrams with a wrong source, want %v; the last %s after the change: %+v; told of %v, %v", n,
				want, wrong[n-1].At.Sub(since), wrong[n-1], s.c.eventsOf(o.UID), err)
		}
	}
	if err := seen.Complete(); err != nil {
		s.Error(err)
	}
}

// TestEgressServiceIngress: the load balancer gives the Service other addresses: what pods send has the former ones, or
// the new ones, and then these alone; hosts outside reach the Service at the new ones.
func TestEgressServiceIngress(t *testing.T) {
	c := theCluster(t)
	s := newBehindService(t, 72, v1.EgressServiceSpec{NodeSelector: on(c.nodes[0])})
	s.readyOn(c.nodes[0].Name)
	first := s.b.balancer.ips
	for _, p := range behindPods {
		s.n.from(p).to(c.outside(0)).soonArrivesAs(first...)
	}
	seen := c.capture(t)
	begun := time.Now()
	s.flows(seen, begun)
	s.b.balancer.ips = c.beyond(74)
	second := s.b.balancer.ips
	s.n.ingress("one", second)
	within(t, soon, func() error { return s.leavesWith(second) })
	s.readyOn(c.nodes[0].Name)
	changed := time.Now()
	s.flows(seen, changed)
	t.Logf("while the addresses changed: %s", seen.lost(begun))
	s.only(seen, changed, second)
	s.only(seen, begun, concat(first, second))
	for _, p := range behindPods {
		s.n.from(p).to(c.outside(0)).soonArrivesAs(second...)
		s.n.from(p).to(c.outside(1)).arrivesAs(second...)
	}
	c.from(t, c.hosts[0]).to(s.b.balancer).answeredBy(behindPods...)
}

// leavesWith is nil if the status names these addresses.
func (s egressService) leavesWith(ips []netip.Addr) error {
	o, err := s.get()
	if want := strings.Join(texts(ips), " "); err == nil && strings.Join(o.Status.SourceIPs, " ") != want {
		err = fmt.Errorf("status.sourceIPs are %v, want %s", o.Status.SourceIPs, want)
	}
	return err
}

// TestEgressServiceHostByNetwork: pods of all nodes leave through the host with the Service's address and by the host's
// routing table; so do the answers of the Service to a host that is reached by that alone, and not those to a node.
// They follow to another host, and leave the table when the EgressService no longer names it.
func TestEgressServiceHostByNetwork(t *testing.T) {
	const table = "4244"
	c := theCluster(t)
	s := newBehindService(t, 76, v1.EgressServiceSpec{NodeSelector: on(c.nodes[0]), Network: table})
	ips := s.b.balancer.ips
	for _, m := range c.nodes[:2] {
		for i, ip := range m.Secondary[0] {
			s.defaultRoute(m, ip, c.hosts[0].Secondary[0][i], table)
		}
	}
	seen := c.capture(t)
	var begun time.Time
	for i, m := range c.nodes[:2] {
		s.moveTo(m)
		s.isReadyOn(m.Name)
		beside := m
		beside.IPs = m.Secondary[0]
		c.routed(t, c.hosts[0], beside, s.b.balancer)
		if i == 0 {
			begun = time.Now()
		}
		for _, p := range behindPods {
			s.n.from(p).to(c.beside(0)).soonArrivesAs(ips...)
			s.n.from(p).to(c.outside(0)).arrivesAs(ips...) // it is reached by the link, too
		}
		c.from(t, c.hosts[0]).to(s.b.balancer).answeredBy(behindPods...)
		c.from(t, c.nodes[2]).to(s.b.on(m)).answeredBy(behindPods...)
	}
	s.patch(`{"spec":{"network":null}}`)
	s.readyOn(c.nodes[1].Name)
	for _, p := range behindPods {
		s.n.from(p).to(c.outside(1)).soonArrivesAs(ips...)
	}
	s.only(seen, begun, ips)
}

// TestEgressServiceHostFails: the host loses its power. Another one is elected, and has the label; new connections and
// datagrams of the pods on the other nodes have the Service's address, and nothing moves back. The way in, which a load
// balancer leads to the new host, is TestMetalLBPowerOff's.
func TestEgressServiceHostFails(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	s := newBehindServiceOf(t, 78, v1.EgressServiceSpec{NodeSelector: selectsWhere("kubernetes.io/hostname", "In",
		c.nodes[1].Name, c.nodes[2].Name)}, pod{labels: late, sends: true}) // started anew, one has another address
	ips := s.b.balancer.ips
	within(t, soon, func() error { return s.labelled(c.nodes[1].Name) })
	s.readyOn(c.nodes[1].Name)
	seen := c.capture(t)
	begun := time.Now()
	s.flows(seen, begun)
	rest := []string{behindPods[0], behindPods[2]}
	c.powerOff(t, c.nodes[1].Name)
	t.Logf("another host after %s", s.hostIs(c.nodes[2].Name, notReadyTimeout))
	seen.flowing(c, s.n, rest, time.Now(), soon)
	s.readyOn(c.nodes[2].Name)
	for _, p := range rest {
		s.n.from(p).to(c.outside(0)).soonArrivesAs(ips...)
		s.n.from(p).to(c.outside(1)).arrivesAs(ips...)
	}
	c.powerOn(t, c.nodes[1].Name)
	s.n.awaits(pod{name: behindPods[1], node: c.nodes[1]})
	s.flows(seen, time.Now())
	s.readyOn(c.nodes[2].Name)
	must(t, s.labelled(c.nodes[2].Name))
	s.only(seen, begun, ips)
}
