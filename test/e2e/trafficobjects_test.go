package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// otherPods are where trafficPods are, and no EgressIP with networks selects them.
var otherPods = []string{"near-db", "far-db"}

var db = map[string]string{"app": "db"}

// TestTrafficObjects: what several EgressIPTraffics, EgressIPs beside one without networks, and changes of an object
// that many select, mean for the packets of pods on the egress node and on another.
func TestTrafficObjects(t *testing.T) {
	theCluster(t).alikeInBoth(t)
	b := newByDestination(t)
	b.n.runs(pod{name: otherPods[0], node: b.c.nodes[1], labels: db},
		pod{name: otherPods[1], node: b.c.nodes[2], labels: db})
	in := func(name string, test func(byDestination)) part {
		return part{name, func(t *testing.T, n *namespace) { test(byDestination{t, b.c, n}) }}
	}
	b.n.each(
		in("Union", byDestination.union),
		in("CatchAll", byDestination.besideCatchAll),
		in("CatchAllOnLink", byDestination.catchAllOnLink),
		in("Deleted", byDestination.deletedWhileSelected),
		in("Connections", byDestination.connectionsEnd),
	)
}

// union: one EgressIP selects several objects, and has the networks of all that there are.
func (b byDestination) union() {
	ips, label := b.c.number(211), b.n.name+"-union"
	b.traffic(label+"-1", label, b.networks(health)...)
	e := b.egressIP("union", label, ips)
	b.leave(health, ips)
	b.leave(work, nil)
	b.traffic(label+"-2", label, append(b.networks(health), b.networks(work)...)...)
	b.leave(work, ips)
	b.deleteTraffic(label + "-1")
	e.selectsObjects(1)
	b.leave(health, ips) // the other names it, too
	b.leave(work, ips)
	b.traffic(label+"-3", label, b.networks(health)...)
	e.selectsObjects(2)
	b.deleteTraffic(label + "-2")
	e.tells(v1.EventNetworksRemoved, b.outside(work).ips[0].String())
	b.leave(work, nil, ips...)
	b.leave(health, ips)
	e.delete()
	b.leave(health, nil, ips...)
}

// selectsObjects waits until so many EgressIPTraffics count.
func (e egressIP) selectsObjects(count int) {
	e.t.Helper()
	within(e.t, soon, func() error {
		o, err := e.get()
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionTrafficSelected)
		if want := fmt.Sprintf("of %d EgressIPTraffic", count); c == nil || !strings.Contains(c.Message, want) {
			return fmt.Errorf("condition %+v, want %q", c, want)
		}
		return nil
	})
}

// catchAll creates an EgressIP of pods to everything outside.
func (b byDestination) catchAll(name string, pods map[string]string, ips []netip.Addr) egressIP {
	b.Helper()
	e := b.c.egressIP(b.T, b.n.name+"-"+name, ips, b.n.itself(), selects(pods))
	e.readyOn(b.c.nodes[1])
	return e
}

// standsBy waits until an EgressIP says that another serves its pods.
func (e egressIP) standsBy(other egressIP) {
	e.t.Helper()
	o := e.until(v1.ConditionOverlapped, metav1.ConditionTrue, v1.ReasonServedByOther)
	said := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionOverlapped).Message
	if !strings.Contains(said, "stands by for 2 pods") || !strings.Contains(said, other.name+" (2)") {
		e.t.Errorf("condition says %q", said)
	}
}

// takesOver says that connections to a place change from one source to another, and have no third meanwhile.
func (b byDestination) takesOver(where int, ips, former []netip.Addr) {
	b.Helper()
	for _, p := range trafficPods {
		b.n.from(p).to(b.outside(where)).formerly(former...).soonArrivesAs(ips...)
	}
}

// besideCatchAll: of an EgressIP with networks and one without, the older serves their pods, and the other stands by as
// a whole, whichever has the networks, until that is gone.
func (b byDestination) besideCatchAll() {
	first, second, third := b.c.number(212), b.c.number(213), b.c.number(214)
	label := b.n.name + "-some"
	b.traffic(label, label, b.networks(health)...)
	all := b.catchAll("all", web, first)
	b.leave(health, first)
	b.leave(work, first)
	b.c.nextSecond(b.T, all)
	some := b.egressIP("some", label, second)
	some.standsBy(all)
	b.leave(health, first)
	b.leave(work, first)
	all.delete()
	b.takesOver(health, second, first)
	b.leave(work, nil, first...)
	some.until(v1.ConditionOverlapped, metav1.ConditionFalse, v1.ReasonNoOverlap)

	b.c.nextSecond(b.T, some)
	again := b.catchAll("again", web, third)
	again.standsBy(some)
	b.leave(health, second)
	b.leave(work, nil)
	some.delete()
	b.takesOver(health, third, second)
	b.leave(work, third)
	again.until(v1.ConditionOverlapped, metav1.ConditionFalse, v1.ReasonNoOverlap)
	again.delete()
	b.leave(health, nil, third...)
}

// catchAllOnLink: the same node hosts an EgressIP without networks on a link, and one with networks on the primary
// network, of other pods.
func (b byDestination) catchAllOnLink() {
	first, second := b.c.number(215), b.c.secondaryNumber(215)
	label := b.n.name + "-primary"
	b.traffic(label, label, b.networks(health)...)
	b.egressIP("primary", label, first)
	all := b.catchAll("link", db, second)
	b.leave(health, first)
	b.leave(work, nil)
	b.leaveOf(otherPods, elsewhere, second)
	for _, ip := range second {
		if ip.Is4() { // a link answers ARP for all addresses of its host, and ND for its own alone
			b.n.from(otherPods[0]).to(family4or6(b.outside(health), ip)).arrivesAs(ip)
			b.n.from(otherPods[1]).to(family4or6(b.outside(work), ip)).arrivesAs(ip)
		}
	}
	all.delete()
	b.leaveOf(otherPods, health, nil, second...)
	b.leave(health, first)
	b.leave(work, nil)
	egressIP{b.T, b.c, b.n.name + "-primary"}.delete()
	b.leave(health, nil, first...)
}

// deletedWhileSelected: an object goes, and comes again, that a hundred EgressIPs select. All say so, and the pods of
// the one that has some follow.
func (b byDestination) deletedWhileSelected() {
	label := b.n.name + "-many"
	b.traffic(label, label, b.networks(health)...)
	all := b.many(100, label)
	ips := b.c.number(120)
	b.leave(health, ips)

	b.deleteTraffic(label)
	begin := time.Now()
	b.leave(health, nil, ips...)
	b.Logf("pods leave with their nodes' addresses %s later", time.Since(begin).Round(time.Millisecond))
	for _, e := range all {
		e.until(v1.ConditionTrafficSelected, metav1.ConditionFalse, v1.ReasonNoNetworks)
	}
	b.Logf("all say so %s later", time.Since(begin).Round(time.Millisecond))
	b.allTell(all, v1.EventNetworksRemoved)

	b.traffic(label, label, b.networks(health)...)
	b.leave(health, ips)
	for _, e := range all {
		e.until(v1.ConditionTrafficSelected, metav1.ConditionTrue, v1.ReasonNetworksSelected)
		e.ready()
	}
	for _, e := range all {
		e.delete()
	}
	b.leave(health, nil, ips...)
}

// many are EgressIPs with the same networks; the first is of this test's pods, the others select none.
func (b byDestination) many(count int, label string) (all []egressIP) {
	b.Helper()
	traffic := selects(map[string]string{"for": label})
	for i := range count {
		spec := v1.EgressIPSpec{EgressIPs: texts(b.c.number(120 + i)), PodSelector: selects(web),
			NamespaceSelector: b.n.itself(), TrafficSelector: &traffic}
		if i > 0 {
			spec.NamespaceSelector = selects(map[string]string{"of": "nobody"})
		}
		all = append(all, b.c.egressIPOf(b.T, fmt.Sprint(label, "-", i), spec))
	}
	for _, e := range all {
		e.until(v1.ConditionTrafficSelected, metav1.ConditionTrue, v1.ReasonNetworksSelected)
		e.ready()
	}
	return all
}

// allTell waits until there is an Event with this reason on each.
func (b byDestination) allTell(all []egressIP, reason string) {
	b.Helper()
	within(b.T, soon, func() error {
		about := metav1.ListOptions{FieldSelector: "reason=" + reason}
		list, err := b.c.api.EventsV1().Events("").List(b.Context(), about)
		if err != nil {
			return err
		}
		told := map[string]bool{}
		for _, e := range list.Items {
			told[e.Regarding.Name] = true
		}
		for _, e := range all {
			if !told[e.name] {
				return fmt.Errorf("EgressIP %s has no Event %s", e.name, reason)
			}
		}
		return nil
	})
}

// connectionsEnd: when claims change, connections to what has another claim end, and others go on: to what has none
// still, and to what has the same.
func (b byDestination) connectionsEnd() {
	ips, label := b.c.number(216), b.n.name+"-connections"
	b.traffic(label, label, b.networks(health)...)
	e := b.egressIP("connections", label, ips)
	b.leave(health, ips)
	f := flowsAt(b.T, b.c.hosts...)
	first, rest := b.outside(work).ips[:1], b.outside(work).ips[1:]
	b.opens("tcp", b.outside(health).ips, b.outside(work).ips)
	b.opens("udp", b.outside(health).ips, b.outside(work).ips)
	nodes := concat(b.c.nodes[1].IPs, b.c.nodes[2].IPs)
	served, unserved := f.to(b.outside(health).ips, ips), f.to(rest, nodes)
	changes := f.to(first, nodes)

	b.names(label, append(b.networks(health), b.networks(work)[0]))
	f.end("to what gets a claim", changes)
	f.live("to what has one, or none", append(served, unserved...))

	b.opens("tcp", first)
	unchanged := append(f.to(first, ips), unserved...)
	b.names(label, b.networks(work)[:1])
	f.end("to what loses its claim", served)
	f.live("to what keeps one, or has none", unchanged)
	b.closes()
	e.delete()
	b.leave(work, nil, ips...)
}

// names has an EgressIPTraffic name other networks.
func (b byDestination) names(name string, networks []v1.CIDR) {
	b.Helper()
	text, err := json.Marshal(networks)
	must(b.T, err)
	b.patchTraffic(name, fmt.Sprintf(`{"spec":{"destinationNetworks":%s}}`, text))
}
