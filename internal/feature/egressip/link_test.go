package egressip_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// tick is how far the cluster's clock goes on at a time.
const tick = 200 * time.Millisecond

// cluster is three nodes on one link, in virtual time: they learn what the API has within a tick, unless it is cut
// off from them, carry out their plans at once, and run the holder that agents run.
type cluster struct {
	t       rapid.TB
	now     time.Time
	nodes   map[string]*member
	e       world.EgressIP
	history []func(*world.World)
	both    map[[2]string]time.Duration // for how long two nodes on one link have both answered for an address
}

// member is a node of it.
type member struct {
	*agent
	name   string
	side   int           // of a partitioned link; those of one side receive each other
	silent time.Duration // for how long the API has been cut off; zero: it is not
	// stopped: the agent stands still; its targets stay.
	stopped  bool
	late     bool      // its watch stands still, and the API server answers
	moved    time.Time // to another side, last
	asking   time.Time // the API server, which does not answer, until then
	dirty    bool
	said     []netip.Addr // of what it holds, in its last report
	spoken   map[netip.Addr]time.Time
	lease    time.Time                // of ARP replies: until then the switch lets them out
	received map[netip.Addr]time.Time // by the switch, from others: until then it keeps them in without a lease
}

var onLink = compiletest.EgressAddr(0)

func newCluster(t rapid.TB) *cluster {
	c := &cluster{t: t, now: time.Unix(1_000_000, 0), nodes: map[string]*member{}, both: map[[2]string]time.Duration{}}
	c.e = *compiletest.EgressIP(0, "", onLink...)
	c.e.InForce = [2]bool{true, true}
	for _, name := range []string{"n1", "n2", "n3"} {
		n := newSimulated(compiletest.Small(name, world.SharedGateway))
		m := &member{agent: n, name: name, spoken: map[netip.Addr]time.Time{}, received: map[netip.Addr]time.Time{}}
		m.world.FollowChanges(func(world.Entry) { m.dirty = true })
		c.nodes[name] = m
	}
	c.assign("n1")
	c.pass(3 * time.Second)
	c.both = map[[2]string]time.Duration{}
	return c
}

// assign is the controller: all of the addresses go to one node, "" is none, and former holders leave them.
func (c *cluster) assign(to string) {
	former := c.e.Items
	c.e.Items = nil
	for _, ip := range onLink {
		if to != "" {
			c.e.Items = append(c.e.Items, world.Assignment{Node: to, IP: ip})
		}
	}
	c.e.Leaving = slices.DeleteFunc(slices.Clone(c.e.Leaving), func(l world.Leaving) bool { return l.Node == to })
	for _, a := range former {
		if !c.e.Names(a.Node, a.IP) {
			c.e.Leaving = append(c.e.Leaving, world.Leaving{Node: a.Node, IP: a.IP, Since: c.now})
		}
	}
	c.wrote()
}

func (c *cluster) wrote() {
	e := c.e
	c.history = append(c.history, func(w *world.World) { w.SetEgressIP(&e) })
}

// letGo is the controller, too: nobody leaves for longer than 3 s.
func (c *cluster) letGo() {
	over := func(l world.Leaving) bool { return c.now.Sub(l.Since) > 3*time.Second }
	if slices.ContainsFunc(c.e.Leaving, over) {
		c.e.Leaving = slices.DeleteFunc(slices.Clone(c.e.Leaving), over)
		c.wrote()
	}
}

func (c *cluster) names() []string { return slices.Sorted(maps.Keys(c.nodes)) }

// pass lets time go by.
func (c *cluster) pass(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.now = c.now.Add(tick)
		c.letGo()
		for _, name := range c.names() {
			c.nodes[name].runs(c)
		}
		for _, name := range c.names() {
			c.nodes[name].announces(c)
		}
		c.count()
	}
}

func (m *member) receives(o *member) bool { return m != o && m.side == o.side }

// runs is what an agent does in a tick.
func (m *member) runs(c *cluster) {
	if m.silent > 0 {
		m.silent += tick
	}
	if m.stopped {
		return
	}
	if m.silent == 0 && !m.late {
		for ; m.seen < len(c.history); m.seen++ {
			c.history[m.seen](m.world)
		}
	}
	m.facts.APISilent, m.facts.Alone = m.silent > 10*time.Second, true
	for _, name := range c.names() {
		if o := c.nodes[name]; m.receives(o) {
			m.facts.Alone = false
			m.world.SetTunnel(name, world.TunnelUp)
		} else if m != o {
			m.world.SetTunnel(name, world.TunnelDown)
		}
	}
	m.steps(c)
	if m.dirty {
		m.round(c)
	}
}

// steps is the holder's step, with what follows from it on the link.
func (m *member) steps(c *cluster) {
	m.facts.View = &m.world.View
	r := m.holder.Step(m.facts, c.now)
	m.facts.Claims, m.facts.Answers = nil, nil
	for claim, y := range r.Yields {
		m.world.SetYielded(claim, y)
	}
	for claim, node := range r.Overdue {
		m.world.SetOverdue(claim, node)
	}
	m.asks(c, r.Ask)
	for _, ip := range r.Announce {
		m.says(c, ip)
	}
	for _, a := range r.Probe {
		m.probes(c, a.IP)
	}
	if r.Renew {
		m.lease = c.now.Add(20 * time.Second)
	}
}

// asks the API server, which answers at once, or not in time.
func (m *member) asks(c *cluster, names []string) {
	if m.silent > 0 && len(names) > 0 {
		m.asking = c.now.Add(holder.AskTimeout)
	} else if !m.asking.IsZero() && !c.now.Before(m.asking) {
		m.asking = time.Time{}
		m.facts.Answers = append(m.facts.Answers, holder.Answer{Err: errors.New("no answer")})
	}
	for i, name := range names {
		if e := c.e; m.silent == 0 {
			m.facts.Answers = append(m.facts.Answers, holder.Answer{Name: name, EgressIP: &e, Last: i == len(names)-1})
		}
	}
}

// round carries out a plan, and reports it.
func (m *member) round(c *cluster) {
	want := compile.Full(m.world, all.Features())
	m.have, m.dirty, m.facts.Holds = want, false, holder.HoldsOf(want)
	var held []netip.Addr
	for id, row := range want.NB.Rows() {
		ip, err := netip.ParseAddr(fmt.Sprint(row.Cols["external_ip"]))
		if err == nil && id.Table == "NAT" && owner(ip) == "e0" {
			held = append(held, ip)
		}
	}
	slices.SortFunc(held, netip.Addr.Compare)
	if held = slices.Compact(held); slices.Equal(held, m.said) {
		return
	}
	m.said = held
	h := &world.Holding{Node: m.name, BootID: "boot-" + m.name, Holds: map[string][]netip.Addr{"e0": held}}
	m.world.SetOwn(h)
	c.history = append(c.history, func(w *world.World) { w.SetHolding(h) })
}

// announces is the announcements' plane: at once, after 1, 2 and 5 s, and every minute.
func (m *member) announces(c *cluster) {
	if m.stopped || m.facts.Holds == nil {
		return
	}
	for ip := range m.spoken {
		if _, still := m.facts.Holds.Addresses[ip]; !still {
			delete(m.spoken, ip)
		}
	}
	for ip := range m.facts.Holds.Addresses {
		if m.spoken[ip].IsZero() {
			m.spoken[ip] = c.now
		}
		switch age := c.now.Sub(m.spoken[ip]); {
		case age == 0, age == time.Second, age == 2*time.Second, age == 5*time.Second, age%time.Minute == 0:
			m.says(c, ip)
		}
	}
}

// says is an announcement, which asks who else has the address.
func (m *member) says(c *cluster, ip netip.Addr) {
	for _, name := range c.names() {
		if o := c.nodes[name]; m.receives(o) {
			o.takes(c, ip, m)
		}
	}
	m.probes(c, ip)
}

// probes asks the link who has an address.
func (m *member) probes(c *cluster, ip netip.Addr) {
	for _, name := range c.names() {
		if o := c.nodes[name]; m.receives(o) && o.answersFor(c, ip) {
			m.takes(c, ip, o)
		}
	}
}

// takes is what a node's switch and its listener receive.
func (m *member) takes(c *cluster, ip netip.Addr, from *member) {
	m.received[ip] = c.now.Add(70 * time.Second)
	if m.facts.Holds != nil && !m.stopped {
		if _, watched := m.facts.Holds.Addresses[ip]; watched {
			m.facts.Claims = append(m.facts.Claims, holder.Claim{IP: ip, MAC: from.world.Host().UplinkMAC})
		}
	}
}

// answersFor says whether OVN's answers get out: it translates, nothing mutes it, and it has the lease, or nobody
// else was received.
func (m *member) answersFor(c *cluster, ip netip.Addr) bool {
	f := world.FamilyOf(ip)
	asks := [...]string{"arp,in_port={eth0},arp_tpa=", "icmp6,icmp_type=135,in_port={eth0},nd_target="}[f]
	_, muted := m.have.Flows.Get(plan.Flow{Bridge: "breth0", Priority: 120, Match: asks + ip.String()})
	if muted || !slices.Contains(m.said, ip) {
		return false
	}
	return m.lease.After(c.now) || !m.received[ip].After(c.now)
}

// count notes who answers together.
func (c *cluster) count() {
	for i, a := range c.names() {
		for _, b := range c.names()[i+1:] {
			pair, both := [2]string{a, b}, func(ip netip.Addr) bool {
				return c.nodes[a].answersFor(c, ip) && c.nodes[b].answersFor(c, ip) && !c.forgotten(ip, a, b)
			}
			if c.nodes[a].receives(c.nodes[b]) && slices.ContainsFunc(onLink, both) {
				c.both[pair] += tick
			} else {
				c.both[pair] = 0
			}
			if c.both[pair] > c.patience(a, b) {
				c.t.Fatalf("%s and %s both answer for %v", a, b, c.both[pair])
			}
		}
	}
}

// forgotten says that no agent of these runs, and that their switches have received nobody in the last 70 s: nothing is
// left there that could keep one of them from answering.
func (c *cluster) forgotten(ip netip.Addr, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		m := c.nodes[name]
		return !m.stopped || m.received[ip].After(c.now)
	})
}

// patience is how long two nodes may both answer: the news of a move, or an answer of the API server that does not
// come; where it is silent and answered a moment ago, until it counts as out of reach; where an agent stands
// still, until the switch has received the other one's next announcement.
func (c *cluster) patience(names ...string) time.Duration {
	longest := 3 * time.Second
	for _, name := range names {
		switch m := c.nodes[name]; {
		case m.stopped && c.now.Sub(c.lastMove(names)) < 65*time.Second:
			return 65 * time.Second
		case m.stopped:
			longest = 22 * time.Second
		case m.silent > 0:
			longest = max(longest, 13*time.Second)
		}
	}
	return longest
}

// lastMove is when a node came to another side of the link: what was announced before was not received there.
func (c *cluster) lastMove(names []string) (last time.Time) {
	for _, name := range names {
		if m := c.nodes[name]; m.moved.After(last) {
			last = m.moved
		}
	}
	return last
}

// fault happens to a node, or ends.
func (c *cluster) fault(t *rapid.T) {
	m := c.nodes[rapid.SampledFrom(c.names()).Draw(t, "node")]
	switch rapid.IntRange(0, 6).Draw(t, "fault") {
	case 0:
		m.side, m.moved = rapid.IntRange(0, 2).Draw(t, "side"), c.now
	case 1:
		m.silent = tick
	case 2:
		m.silent = 0
	case 3:
		m.stopped = true
	case 4:
		m.stopped = false
	case 5:
		m.late = true
	case 6:
		m.late = false
	}
	c.both = map[[2]string]time.Duration{}
}

// TestOneAnswerer: however addresses move while the link is partitioned, the API server is silent and agents stand
// still, two nodes that receive each other do not both go on answering for an address. In the end all is let go of that
// nobody is to have.
func TestOneAnswerer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "moves") {
				c.assign(rapid.SampledFrom([]string{"", "n1", "n2", "n3"}).Draw(t, "to"))
			} else {
				c.fault(t)
			}
			c.pass(rapid.SampledFrom(spans).Draw(t, "for"))
		}
		for _, m := range c.nodes {
			m.side, m.silent, m.stopped, m.late = 0, 0, false, false
		}
		c.assign("")
		c.pass(10 * time.Second)
		for name, m := range c.nodes {
			if len(m.said) > 0 {
				t.Errorf("%s still translates to %v", name, m.said)
			}
		}
	})
}

// TestKeepsWhatNobodyTakes: whatever becomes of the link, of the API server and of agents, the node that is assigned
// an address goes on answering for it as long as no other node is assigned it.
func TestKeepsWhatNobodyTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			c.fault(t)
			c.pass(rapid.SampledFrom(spans).Draw(t, "for"))
			for _, ip := range onLink {
				if !c.nodes["n1"].answersFor(c, ip) {
					t.Fatalf("n1 does not answer for %v", ip)
				}
			}
		}
	})
}

// answerers are the nodes that answer for an address.
func (c *cluster) answerers() (out []string) {
	for _, name := range c.names() {
		if c.nodes[name].answersFor(c, onLink[0]) {
			out = append(out, name)
		}
	}
	return out
}

// TestRulesOfOneAnswerer: each rule that keeps an address at one node, with a case that it is for: who answers in the
// end.
func TestRulesOfOneAnswerer(t *testing.T) {
	for name, x := range map[string]struct {
		happens func(c *cluster, n1 *member)
		want    string
	}{
		"yields while the API server is silent": {func(c *cluster, n1 *member) {
			n1.silent = tick
			c.pass(12 * time.Second)
			c.assign("n2")
			c.pass(time.Second)
		}, "n2"},
		"yields when the API server does not answer": {func(c *cluster, n1 *member) {
			n1.silent = tick
			c.assign("n2")
			c.pass(3 * time.Second)
		}, "n2"},
		"without an agent the lease ends": {func(c *cluster, n1 *member) {
			n1.stopped = true
			c.assign("n2")
			c.pass(22 * time.Second)
		}, "n2"},
		"without an agent goes on where nobody else announces": {func(c *cluster, n1 *member) {
			n1.stopped = true
			c.pass(3 * time.Minute)
		}, "n1"},
		"probes while the API server is silent": {func(c *cluster, n1 *member) {
			n1.silent, c.nodes["n2"].side = tick, 1
			c.pass(12 * time.Second)
			c.assign("n2")
			c.pass(10 * time.Second) // has announced it five times, and will not again for most of a minute
			c.nodes["n2"].side = 0
			c.pass(2 * time.Second)
		}, "n2"},
		"probes once others answer again, and asks nobody": {func(c *cluster, n1 *member) {
			n1.silent, n1.side = tick, 1
			c.assign("n2")
			c.pass(7*time.Second + 2*tick)
			n1.side = 0
			c.pass(3 * tick)
		}, "n2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			x.happens(c, c.nodes["n1"])
			if have := strings.Join(c.answerers(), " "); have != x.want {
				t.Errorf("%s answers, want %s", have, x.want)
			}
		})
	}
}

// TestForwardsUntilAllKnow: the successor announces the address, and so gets what answers connections of pods
// whose nodes still lead them to the former holder. It sends that on.
func TestForwardsUntilAllKnow(t *testing.T) {
	c := newCluster(t)
	n1, n2 := c.nodes["n1"], c.nodes["n2"]
	forwards := func() bool {
		for _, actions := range n2.have.Flows.Rows() {
			if strings.Contains(actions, n1.world.Host().UplinkMAC+"->eth_dst") {
				return true
			}
		}
		return false
	}
	c.assign("n2")
	c.pass(tick) // the report that n2 holds it is on its way
	if !n2.answersFor(c, onLink[0]) || !slices.Contains(n1.said, onLink[0]) || !forwards() {
		t.Error("n2 announces the address, n1 is steered to, and what comes to n2 stays there")
	}
	c.pass(10 * time.Second)
	if forwards() {
		t.Error("n1 does not translate any more, and n2 still forwards to it")
	}
}
