package egressip_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// exchanging is two EgressIPs in force, with an address each.
func exchanging() *world.World {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("older", 10, "172.18.0.33"))
	w.SetEgressIP(object("younger", 0, "172.18.0.44"))
	for range 2 {
		for name, d := range settle(w) {
			hold(w, d.Items[0].Node, map[string][]netip.Addr{name: {d.Items[0].IP}})
		}
	}
	settle(w)
	return w
}

// asks changes the spec of one, and decides and writes at a time.
func asks(w *world.World, name, ip string, now time.Time) map[string]egressip.Decision {
	e := *w.EgressIP(name)
	e.IPs = []netip.Addr{addr(ip)}
	w.SetEgressIP(&e)
	return at(w, now)
}

func at(w *world.World, now time.Time) map[string]egressip.Decision {
	d := decideAt(w, now)
	write(w, d)
	return d
}

// TestExchange: two EgressIPs exchange their addresses by two writes with decisions and seconds between, either first:
// both stay in force, so that nothing leaves with a node's address.
func TestExchange(t *testing.T) {
	for _, order := range [][2]string{{"older", "younger"}, {"younger", "older"}} {
		w, now := exchanging(), time.Unix(2000, 0)
		next := map[string]string{"older": "172.18.0.44", "younger": "172.18.0.33"}
		inForce := func(when string, all map[string]egressip.Decision) {
			for name, d := range all {
				if !d.InForce[world.V4] {
					t.Errorf("%s first, %s: %s is not in force: %s", order[0], when, name,
						conditionOf(d, egressip.ConditionAssigned).Message)
				}
			}
		}
		inForce("one asks", asks(w, order[0], next[order[0]], now))
		inForce("in between", at(w, now.Add(5*time.Second)))
		inForce("the other asks", asks(w, order[1], next[order[1]], now.Add(9*time.Second)))
		inForce("both wait", at(w, now.Add(20*time.Second)))
		for _, n := range []string{"n1", "n2"} {
			hold(w, n, nil)
		}
		d := at(w, now.Add(21*time.Second))
		inForce("both have", d)
		for name, ip := range next {
			if len(d[name].Items) != 1 || d[name].Items[0].IP != addr(ip) {
				t.Errorf("%s first: %s has %q", order[0], name, items(d[name]))
			}
		}
	}
}

// TestExchangeThatIsNone: who asks for what an older one has is in force for ten seconds, is decided about again then,
// and says so; who never was in force is not for a moment.
func TestExchangeThatIsNone(t *testing.T) {
	w, now := exchanging(), time.Unix(2000, 0)
	d := asks(w, "younger", "172.18.0.33", now)["younger"]
	c := conditionOf(d, egressip.ConditionFallback)
	if !d.InForce[world.V4] || !strings.Contains(c.Message, "ten seconds") {
		t.Errorf("it is not said how long it is in force: %v, %+v", d.InForce, c)
	}
	if !d.Again.Equal(now.Add(10 * time.Second)) {
		t.Errorf("decided again at %v", d.Again)
	}
	d = at(w, now.Add(9*time.Second))["younger"]
	if !d.InForce[world.V4] || !d.Again.Equal(now.Add(10*time.Second)) {
		t.Errorf("before: %v, again at %v", d.InForce, d.Again)
	}
	if d = at(w, d.Again)["younger"]; d.InForce[world.V4] || !d.Again.IsZero() {
		t.Errorf("after: %v, again at %v", d.InForce, d.Again)
	}
	w, now = exchanging(), time.Unix(2000, 0)
	asks(w, "younger", "172.18.0.33", now.Add(8*time.Second)) // by a controller whose clock is fast
	if d = at(w, now)["younger"]; !d.InForce[world.V4] || !d.Again.Equal(now.Add(18*time.Second)) {
		t.Errorf("eight seconds earlier: %v, again at %v", d.InForce, d.Again)
	}
	if d = at(w, now.Add(-time.Hour))["younger"]; d.InForce[world.V4] || !d.Again.IsZero() {
		t.Errorf("an hour earlier: %v, again at %v", d.InForce, d.Again)
	}
	w.SetEgressIP(object("third", -1, "172.18.0.33"))
	if d = at(w, now)["third"]; d.InForce[world.V4] {
		t.Error("one that never had an address is in force")
	}
}
