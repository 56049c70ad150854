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

// leaks is pods that send to three destinations all the time, and what was seen of it: to one host each family has an
// egress IP, to one address of the other host it has another, and to that host's other address none.
type leaks struct {
	byDestination
	seen *capture
	on   map[string][]netip.Addr // the addresses of each pod's node
	ips  [2][]netip.Addr         // to host health, and to the one address of host work
}

func (l *leaks) ofWork() netip.Addr { return l.outside(work).ips[0] }

// right says whether a datagram has a source that is right by what the objects say.
func (l *leaks) right(x traffic.Sighting) bool {
	switch {
	case slices.Contains(l.outside(health).ips, x.Dst):
		return slices.Contains(l.ips[0], x.Src)
	case x.Dst == l.ofWork():
		return slices.Contains(l.ips[1], x.Src)
	}
	return l.asNode(x)
}

func (l *leaks) asNode(x traffic.Sighting) bool { return slices.Contains(l.on[x.Pod], x.Src) }

// wrong counts datagrams of this test's pods, from a time on, that are not right.
func (l *leaks) wrong(begin time.Time, right func(traffic.Sighting) bool) map[string]int {
	out := map[string]int{}
	for _, x := range l.seen.Since(begin) {
		if strings.HasPrefix(x.Pod, l.n.name+"/") && !right(x) {
			out[fmt.Sprintf("%s (%s) to %s as %s", x.Pod, x.Kind, x.Dst, x.Src)]++
		}
	}
	return out
}

// none fails if any datagram was wrong from a time on.
func (l *leaks) none(when string, begin time.Time, right func(traffic.Sighting) bool) {
	l.Helper()
	if wrong := l.wrong(begin, right); len(wrong) > 0 {
		l.Errorf("%s: datagrams with a wrong source: %v", when, wrong)
	}
	if err := l.seen.Complete(); err != nil {
		l.Error(err)
	}
}

// settles waits until nothing but what is right was seen for a while; it returns when that is over.
func (l *leaks) settles(right func(traffic.Sighting) bool) time.Time {
	l.Helper()
	const quiet = time.Second
	within(l.T, soon, func() error {
		time.Sleep(quiet)
		if wrong := l.wrong(time.Now().Add(-quiet), right); len(wrong) > 0 {
			return fmt.Errorf("still seen: %v", wrong)
		}
		return nil
	})
	return time.Now()
}

func newLeaks(t *testing.T) *leaks {
	c := theCluster(t)
	l := &leaks{byDestination: byDestination{t, c, c.namespace(t, nil)}, on: map[string][]netip.Addr{},
		ips: [2][]netip.Addr{c.number(186), c.number(187)}}
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	name := l.n.name
	l.traffic(name+"-health", name+"-health", l.networks(health)...)
	l.traffic(name+"-work", name+"-work", l.networks(work)[0])
	for i, to := range []string{"health", "work"} {
		traffic := selects(map[string]string{"for": name + "-" + to})
		c.egressIPOf(t, name+"-"+to, v1.EgressIPSpec{EgressIPs: texts(l.ips[i]), NamespaceSelector: l.n.itself(),
			PodSelector: selects(web), TrafficSelector: &traffic}).ready()
	}
	l.seen = c.capture(t)
	return l
}

// starts begins pods, one on each of some nodes, that send from their first instruction on.
func (l *leaks) starts(prefix string, nodes ...int) (pods []string) {
	l.Helper()
	var list []pod
	for _, i := range nodes {
		p := pod{name: fmt.Sprint(prefix, i), node: l.c.nodes[i], labels: web, sends: true}
		l.on[l.n.name+"/"+p.name] = l.c.nodes[i].IPs
		list, pods = append(list, p), append(pods, p.name)
	}
	l.n.runs(list...)
	l.seen.flowing(l.c, l.n, pods, time.Now(), soon)
	return pods
}

// TestTrafficLeaks: at pods' starts, at changes of networks, at a planned move and at a failover no datagram has a
// source that is wrong for where it goes, and what goes elsewhere is not disturbed by any of it.
func TestTrafficLeaks(t *testing.T) {
	l := newLeaks(t)
	begin := time.Now()
	stay := l.starts("stays", 0)
	l.starts("begins", 1, 2)
	l.none("at the start", begin, l.right)

	l.patchTraffic(l.n.name+"-work", `{"spec":{"destinationNetworks":["10.99.0.0/16","`+string(l.networks(work)[0])+`"]}}`)
	l.patchTraffic(l.n.name+"-work", `{"spec":{"destinationNetworks":["`+string(l.networks(work)[0])+`"]}}`)
	l.settles(l.right)
	l.none("with a network that nobody sends to", begin, l.right)

	begin = time.Now()
	l.patchTraffic(l.n.name+"-work", `{"metadata":{"labels":{"for":"nobody"}}}`)
	without := func(x traffic.Sighting) bool {
		return x.Dst == l.ofWork() && l.asNode(x) || x.Dst != l.ofWork() && l.right(x)
	}
	either := func(x traffic.Sighting) bool { return without(x) || l.right(x) }
	l.settles(without)
	l.patchTraffic(l.n.name+"-work", `{"metadata":{"labels":{"for":"`+l.n.name+`-work"}}}`)
	l.none("while networks come and go", begin, either)
	begin = l.settles(l.right)

	l.c.unlabelEgress(t, l.c.nodes[1])
	for _, to := range []string{"health", "work"} {
		egressIP{t, l.c, l.n.name + "-" + to}.readyOn(l.c.nodes[2])
	}
	l.settles(l.right)
	l.none("at a planned move", begin, l.right)

	l.c.labelEgress(t, l.c.nodes[1])
	l.c.powerOff(t, l.c.nodes[2].Name)
	for _, to := range []string{"health", "work"} {
		egressIP{t, l.c, l.n.name + "-" + to}.readyOn(l.c.nodes[1])
	}
	l.seen.flowing(l.c, l.n, stay, time.Now(), soon)
	l.c.powerOn(t, l.c.nodes[2].Name)
	l.settles(l.right)
	l.none("at a failover", begin, l.right)
}
