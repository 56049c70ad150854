package egressip_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// exchanging is two EgressIPs in force, and those who decide about them.
type exchanging struct {
	*testing.T
	w         *world.World
	exchanges egressip.Exchanges
}

// newExchanging has the older ask for the first address, and the younger for the others.
func newExchanging(t *testing.T, first string, others ...string) *exchanging {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("older", 10, first))
	w.SetEgressIP(object("younger", 0, others...))
	for range 2 {
		holds := map[string]map[string][]netip.Addr{}
		for name, d := range settle(w) {
			for _, i := range d.Items {
				if holds[i.Node] == nil {
					holds[i.Node] = map[string][]netip.Addr{}
				}
				holds[i.Node][name] = append(holds[i.Node][name], i.IP)
			}
		}
		for node, h := range holds {
			hold(w, node, h)
		}
	}
	settle(w)
	return &exchanging{t, w, egressip.Exchanges{}}
}

// asks changes the spec of one, and decides and writes at a time.
func (x *exchanging) asks(name string, now time.Time, ips ...string) map[string]egressip.Decision {
	e := *x.w.EgressIP(name)
	e.IPs = nil
	for _, ip := range ips {
		e.IPs = append(e.IPs, addr(ip))
	}
	x.w.SetEgressIP(&e)
	return x.at(now)
}

func (x *exchanging) at(now time.Time) map[string]egressip.Decision {
	d := decideWith(x.w, egressip.Beside{Now: now, Exchanges: x.exchanges})
	write(x.w, d)
	return d
}

// bound says whether the younger is in force in a family, and when it is decided about again; zero: not.
func (x *exchanging) bound(when string, d egressip.Decision, f world.Family, is bool, again time.Time) {
	x.Helper()
	if d.InForce[f] != is || !d.Again.Equal(again) {
		x.Errorf("%s: in force %v, again at %v: %s", when, d.InForce, d.Again,
			conditionOf(d, egressip.ConditionAssigned).Message)
	}
}

// TestExchange: two EgressIPs exchange their addresses by two writes with decisions and seconds between, either first:
// both stay in force, so that nothing leaves with a node's address.
func TestExchange(t *testing.T) {
	for _, order := range [][2]string{{"older", "younger"}, {"younger", "older"}} {
		x, now := newExchanging(t, "172.18.0.33", "172.18.0.44"), time.Unix(2000, 0)
		next := map[string]string{"older": "172.18.0.44", "younger": "172.18.0.33"}
		inForce := func(when string, all map[string]egressip.Decision) {
			for name, d := range all {
				if !d.InForce[world.V4] {
					t.Errorf("%s first, %s: %s is not in force: %s", order[0], when, name,
						conditionOf(d, egressip.ConditionAssigned).Message)
				}
			}
		}
		inForce("one asks", x.asks(order[0], now, next[order[0]]))
		inForce("in between", x.at(now.Add(5*time.Second)))
		inForce("the other asks", x.asks(order[1], now.Add(9*time.Second), next[order[1]]))
		inForce("both wait", x.at(now.Add(20*time.Second)))
		for _, n := range []string{"n1", "n2", "n3"} {
			hold(x.w, n, nil)
		}
		d := x.at(now.Add(21 * time.Second))
		inForce("both have", d)
		for name, ip := range next {
			if len(d[name].Items) != 1 || d[name].Items[0].IP != addr(ip) {
				t.Errorf("%s first: %s has %q", order[0], name, items(d[name]))
			}
		}
		if len(x.exchanges) > 0 {
			t.Errorf("%s first: not forgotten: %v", order[0], x.exchanges)
		}
	}
}

// TestExchangeThatIsNone: who asks for what an older one has is in force for ten seconds, is decided about again then,
// and says so; who never was in force is not for a moment. A clock that is set back has it begin anew.
func TestExchangeThatIsNone(t *testing.T) {
	x, now := newExchanging(t, "172.18.0.33", "172.18.0.44"), time.Unix(2000, 0)
	d := x.asks("younger", now, "172.18.0.33")["younger"]
	if c := conditionOf(d, egressip.ConditionFallback); !strings.Contains(c.Message, "ten seconds") {
		t.Errorf("it is not said how long it is in force: %+v", c)
	}
	over := now.Add(10 * time.Second)
	x.bound("at once", d, world.V4, true, over)
	x.bound("later", x.at(now.Add(9 * time.Second))["younger"], world.V4, true, over)
	back := now.Add(-time.Hour)
	x.bound("an hour before", x.at(back)["younger"], world.V4, true, back.Add(10*time.Second))
	x.bound("over", x.at(back.Add(10 * time.Second))["younger"], world.V4, false, time.Time{})
	x.w.SetEgressIP(object("third", -1, "172.18.0.33"))
	x.bound("never had one", x.at(now)["third"], world.V4, false, time.Time{})
}

// TestExchangeAnnotated: one that is annotated to drop is not said to end that.
func TestExchangeAnnotated(t *testing.T) {
	x := newExchanging(t, "172.18.0.33", "172.18.0.44")
	e := *x.w.EgressIP("younger")
	e.DropWhenUnassigned = true
	x.w.SetEgressIP(&e)
	d := x.asks("older", time.Unix(2000, 0), "172.18.0.44")["younger"]
	if c := conditionOf(d, egressip.ConditionFallback); strings.Contains(c.Message, "until") ||
		!strings.Contains(c.Message, "as annotation") {
		t.Errorf("%+v", c)
	}
}

// TestExchangeOfAPart: it counts from when the last address of a family is lost, however long others of the object have
// had no node.
func TestExchangeOfAPart(t *testing.T) {
	now := time.Unix(2000, 0)
	over := now.Add(10 * time.Second)
	for name, others := range map[string][]string{
		"another of the family": {"172.18.0.44", "192.0.2.7"}, "the other family": {"172.18.0.44", "2001:db8::7"},
	} {
		x := newExchanging(t, "172.18.0.33", others...)
		x.bound(name+": before", x.at(now.Add(-time.Minute))["younger"], world.V4, true, time.Time{})
		x.bound(name, x.asks("older", now, "172.18.0.44")["younger"], world.V4, true, over)
		x.bound(name+": over", x.at(over)["younger"], world.V4, false, time.Time{})
	}
	x := newExchanging(t, "172.18.0.33", "172.18.0.44", "172.18.0.55")
	x.bound("it keeps one", x.asks("older", now, "172.18.0.44")["younger"], world.V4, true, time.Time{})
}
