package holder_test

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

const stranger, successor = "02:00:00:00:00:99", "02:00:00:00:00:02"

var heldIP = compiletest.EgressAddr(0)[0]

var errAway = errors.New("the API server does not answer")

// node is n1's machine with a world, in which n1 is assigned one address, and a clock that goes on when it is told
// to. Its plans are carried out at once.
type node struct {
	*holder.Machine
	t     *testing.T
	ip    netip.Addr
	world *world.World
	facts holder.Facts
	now   time.Time
	wake  time.Time
	early bool // no plan was applied yet

	answer error                             // of the API server, which answers at once
	brings func(w *world.World)              // by the watch, before it answers
	knows  func(name string) *world.EgressIP // the API server; nil: what the watch has brought

	asked, probed, renewed int
	announced              []time.Time
	warned                 string // last
}

func newNode(t *testing.T, ip netip.Addr) *node {
	w := compiletest.Small("n1", world.SharedGateway)
	e := compiletest.EgressIP(0, "", ip)
	e.Items = []world.Assignment{{Node: "n1", IP: ip}}
	w.SetEgressIP(e)
	x := &node{Machine: &holder.Machine{Self: "n1"}, t: t, ip: ip, world: w, now: time.Unix(1_000_000, 0)}
	x.facts.View = &w.View
	x.facts.NotSteered = func(c world.EgressAddress) string { return egressip.NotSteered(w, c.Object, c.IP) }
	x.step()
	return x
}

// step is one of the machine, with what follows from it at once.
func (x *node) step() {
	for again := true; again; {
		x.carryOut()
		r := x.Step(x.facts, x.now)
		x.facts.Claims, x.facts.Answers, x.facts.Back = nil, nil, false
		for c, y := range r.Yields {
			x.world.SetYielded(c, y)
		}
		for c, node := range r.Overdue {
			x.world.SetOverdue(c, node)
		}
		for _, warning := range r.Warnings {
			x.warned = warning.Text
		}
		for range r.Announce {
			x.announced = append(x.announced, x.now)
		}
		for _, a := range r.Probe {
			if a.IP == x.ip && a.Dev != "" && a.MAC != "" {
				x.probed++
			}
		}
		if r.Renew {
			x.renewed++
		}
		if x.wake = r.Wake; !x.wake.After(x.now) {
			x.t.Fatalf("wants to be asked again at %v, and it is %v", x.wake, x.now)
		}
		x.answers(r.Ask)
		again = len(x.facts.Answers) > 0 || len(r.Yields) > 0
	}
}

// carryOut has the plan applied.
func (x *node) carryOut() {
	if x.early {
		return
	}
	x.facts.Holds = holder.HoldsOf(x.plan())
}

// adopt has the node hold what a former process left, and no plan applied.
func (x *node) adopt() {
	former := *x.facts.Holds
	former.Adopted, x.early, x.facts.Holds = true, true, &former
}

// answers is the API server.
func (x *node) answers(names []string) {
	for i, name := range names {
		x.asked++
		if x.answer != nil {
			x.facts.Answers = append(x.facts.Answers, holder.Answer{Name: name, Err: x.answer})
			return
		}
		if x.brings != nil {
			x.brings(x.world)
		}
		told := holder.Answer{Name: name, EgressIP: x.world.EgressIP(name), Last: i == len(names)-1}
		if x.knows != nil {
			told.EgressIP = x.knows(name)
		}
		x.facts.Answers = append(x.facts.Answers, told)
	}
}

// edit changes what the machine is told.
func (x *node) edit(f func(w *world.World)) {
	f(x.world)
	x.step()
}

// after lets time go by.
func (x *node) after(d time.Duration) {
	for end := x.now.Add(d); x.now.Before(end); {
		x.now = end
		if x.wake.Before(end) {
			x.now = x.wake
		}
		x.step()
	}
}

func (x *node) says(macs ...string) {
	for _, mac := range macs {
		x.facts.Claims = append(x.facts.Claims, holder.Claim{IP: x.ip, MAC: mac})
	}
	x.step()
}

func (x *node) alone(is bool) {
	x.facts.Alone = is
	x.step()
}

func (x *node) plan() *plan.State { return compile.Full(x.world, all.Features()) }

// announces says whether the plan has this node answer for an address, and translates whether it translates to one.
func (x *node) announces() bool { return len(x.plan().Announcements) > 0 }

func (x *node) translates() bool { return len(x.plan().Translated) > 0 }

func (x *node) yields() *world.Yield { return x.world.Yielded("e0", x.ip) }

func moves(w *world.World) {
	e := *w.EgressIP("e0")
	e.Items, e.Leaving = []world.Assignment{{Node: "n2", IP: heldIP}}, []world.Leaving{{Node: "n1", IP: heldIP}}
	w.SetEgressIP(&e)
}

func holds(w *world.World, nodes ...string) {
	for _, n := range nodes {
		w.SetHolding(&world.Holding{Node: n, BootID: "boot-" + n, Holds: map[string][]netip.Addr{"e0": {heldIP}}})
	}
}

// TestKnowsItsOwnHost: the kernel asks for neighbours with an egress IP of another link.
func TestKnowsItsOwnHost(t *testing.T) {
	x := newNode(t, heldIP)
	h := *x.world.Host()
	h.Links = []world.Link{{Name: "eth1", MAC: stranger}}
	x.world.SetHost(&h)
	x.answer = errAway
	x.says(stranger)
	x.after(5 * time.Second)
	if x.yields() != nil || x.asked > 0 || len(x.Conflicts()) > 0 {
		t.Errorf("took a packet of its own host for another machine's: yields %v, asked %d times, conflicts %v",
			x.yields(), x.asked, x.Conflicts())
	}
}

// TestDefendsAgainstStrangers: not more often than RFC 5227 allows, also on a secondary link, where a node of the
// cluster is not told from others.
func TestDefendsAgainstStrangers(t *testing.T) {
	for name, ip := range map[string]netip.Addr{"primary": heldIP, "secondary": compiletest.SecondaryAddr(0)[0]} {
		t.Run(name, func(t *testing.T) {
			x := newNode(t, ip)
			for range 20 {
				x.says(stranger)
				x.after(time.Second)
			}
			c := x.Conflicts()
			if len(c) != 1 || c[0].MAC != stranger || c[0].Object != "e0" || !x.announces() || x.asked > 2 {
				t.Fatalf("conflicts %v, announces %v, asked %d", c, x.announces(), x.asked)
			}
			if n := len(x.announced); n < 2 || n > 3 || x.announced[1].Sub(x.announced[0]) < holder.DefendEvery {
				t.Errorf("defended at %v", x.announced)
			}
			x.after(holder.ConflictFor + 2*holder.LookEvery)
			if c := x.Conflicts(); len(c) != 0 {
				t.Errorf("still %v", c)
			}
		})
	}
}

// TestAgainstTwoLinks: a machine with two links into the network answers from both, also when it is asked by the
// defence. That is one conflict.
func TestAgainstTwoLinks(t *testing.T) {
	x := newNode(t, heldIP)
	const other = "02:00:00:00:00:98"
	for range 100 {
		x.says(stranger)
		x.says(other)
		if c := x.Conflicts(); len(c) > 1 || len(c) == 1 && c[0].MAC != other && c[0].MAC != stranger {
			t.Fatalf("conflicts %v", c)
		}
		x.after(100 * time.Millisecond)
	}
	if len(x.announced) > 2 || x.asked > 2 {
		t.Errorf("in 10 s defended %d times, asked the API server %d times", len(x.announced), x.asked)
	}
	if c := x.Conflicts(); len(c) != 1 || c[0].MAC != other {
		t.Errorf("conflicts %v", c)
	}
}

// TestYieldsToTheUnreachable: the successor's tunnel to this node is cut, and the link they share is not. It answers,
// so this node does not.
func TestYieldsToTheUnreachable(t *testing.T) {
	x := newNode(t, heldIP)
	holds(x.world, "n1", "n2")
	x.world.SetTunnel("n2", world.TunnelDown)
	x.brings = moves
	x.says(successor)
	x.after(time.Minute)
	if x.announces() || len(x.announced) > 0 {
		t.Fatalf("announces %t, defended %d times", x.announces(), len(x.announced))
	}
	x.world.SetTunnel("n2", world.TunnelUp)
	x.after(2 * holder.DrainFor)
	if x.yields() != nil || x.announces() {
		t.Errorf("answers: still yields %v, announces %t", x.yields(), x.announces())
	}
}

// TestAfterRestartWithoutKubernetes: the agent was killed and started while the API server cannot be reached.
// Kubernetes has given the address to another node, and this one's OVN still answers for it.
func TestAfterRestartWithoutKubernetes(t *testing.T) {
	x := newNode(t, heldIP)
	e := x.world.EgressIP("e0")
	x.world.DelEgressIP("e0")
	x.adopt()
	silenced := func() (n int) {
		for f := range x.plan().Flows.Rows() {
			if strings.Contains(f.Match, heldIP.String()) {
				n++
			}
		}
		return n
	}
	x.step()
	if x.says(successor); silenced() > 0 {
		t.Fatalf("the news is on its way, and %d flows keep it from answering", silenced())
	}
	x.answer = errAway
	if x.after(2 * holder.LookEvery); x.probed == 0 {
		t.Fatal("does not ask the link who has it")
	}
	x.says(successor)
	if x.after(holder.NewsWait); silenced() == 0 {
		t.Fatal("goes on answering though the API server does not answer")
	}
	x.after(time.Minute)
	if silenced() == 0 {
		t.Fatal("answers again, and nobody has said that it may")
	}
	x.answer, x.early = nil, false
	x.world.SetEgressIP(e)
	x.after(2 * holder.LookEvery)
	if x.yields() != nil || !x.announces() {
		t.Errorf("it is assigned: still yields %v, announces %t", x.yields(), x.announces())
	}
}

// TestYieldsWithoutKubernetes: and drains. It takes back what the API server says is its own.
func TestYieldsWithoutKubernetes(t *testing.T) {
	for name, silent := range map[string]bool{"silent": true, "no answer": false} {
		t.Run(name, func(t *testing.T) {
			x := newNode(t, heldIP)
			x.facts.APISilent, x.answer = silent, errAway
			x.says(successor)
			if silent {
				x.says(successor) // an answer to what the first claim has announced
				if x.yields() != nil || len(x.announced) != 1 {
					t.Fatalf("yields %v, announced %d times: OVN may have answered without an agent", x.yields(),
						len(x.announced))
				}
				x.after(holder.LookEvery)
				x.says(successor)
			}
			x.after(holder.NewsWait)
			if y := x.yields(); y == nil || y.To != "n2" || x.announces() || !x.translates() {
				t.Fatalf("yields %v; announces %v, translates %v", y, x.announces(), x.translates())
			}
			x.after(holder.DrainFor)
			if x.translates() {
				t.Error("does not end to drain")
			}
			x.after(time.Minute)
			if x.announces() {
				t.Fatal("announces while the API server is away")
			}
			x.facts.APISilent, x.answer = false, nil
			x.after(2 * holder.LookEvery)
			if x.yields() != nil || !x.announces() {
				t.Error("does not take back what the API server says is its own")
			}
		})
	}
}

// TestWaitsForTheWatch: the successor of a planned move is received before the watch tells of it.
func TestWaitsForTheWatch(t *testing.T) {
	x := newNode(t, heldIP)
	holds(x.world, "n1")
	x.brings = moves
	x.says(successor)
	if !x.announces() || x.asked != 0 {
		t.Fatalf("announces %v, asked %d", x.announces(), x.asked)
	}
	x.after(holder.NewsWait)
	if x.announces() || len(x.announced) != 0 || len(x.Conflicts()) != 0 {
		t.Errorf("announces %v, defended %v, conflicts %v", x.announces(), x.announced, x.Conflicts())
	}
	if !x.translates() {
		t.Error("does not translate: packets are still on their way here")
	}
	x.after(holder.DrainFor) // and the successor has not reported: it may have died
	if !x.announces() {
		t.Error("is needed again and does not announce")
	}
}

// TestWatchStandsStill: the API server says that an address is not this node's, and the watch does not bring that. This
// node yields until the watch has, whatever else is claimed at the same time, and whoever claimed the address before.
func TestWatchStandsStill(t *testing.T) {
	moved := func(e *world.EgressIP) *world.EgressIP {
		e.Items = []world.Assignment{{Node: "n2", IP: e.IPs[0]}}
		return e
	}
	for name, c := range map[string]struct {
		before func(x *node)
		now    func(e *world.EgressIP) *world.EgressIP
	}{
		"moved":              {now: moved},
		"deleted":            {now: func(*world.EgressIP) *world.EgressIP { return nil }},
		"lost its addresses": {now: func(e *world.EgressIP) *world.EgressIP { e.Items = nil; return e }},
		"its successor answered a moment ago": {before: func(x *node) {
			x.says(successor)
			x.after(2 * time.Second)
		}, now: moved},
	} {
		t.Run(name, func(t *testing.T) {
			x, second := newNode(t, heldIP), compiletest.EgressAddr(1)[0]
			e := compiletest.EgressIP(1, "", second)
			e.Items = []world.Assignment{{Node: "n1", IP: second}}
			x.edit(func(w *world.World) { w.SetEgressIP(e) })
			if c.before != nil {
				c.before(x)
			}
			x.knows = func(name string) *world.EgressIP {
				e := *x.world.EgressIP(name)
				return c.now(&e)
			}
			x.facts.Claims = []holder.Claim{{IP: second, MAC: successor}}
			x.says(successor)
			x.after(2 * time.Second)
			for range 60 {
				if n := len(x.plan().Announcements); n > 0 {
					t.Fatalf("announces %d addresses", n)
				}
				x.after(time.Second)
			}
			if x.translates() || strings.Contains(x.warned, "cannot be reached") {
				t.Errorf("translates %t, and warns: %s", x.translates(), x.warned)
			}
			x.knows = nil
			x.after(2 * holder.LookEvery)
			if n := len(x.plan().Announcements); x.yields() != nil || n != 2 {
				t.Errorf("both agree: yields %v, announces %d addresses", x.yields(), n)
			}
		})
	}
}

// TestLeavesAndWatchStandsStill: the watch does not bring that the successor has lost the address again. The one that
// left it does not answer beside a third node. Where the watch is not late, the API server is asked once.
func TestLeavesAndWatchStandsStill(t *testing.T) {
	for to, want := range map[string]bool{"n2": true, "n3": false} {
		x := newNode(t, heldIP)
		holds(x.world, "n1")
		x.edit(moves)
		x.knows = func(name string) *world.EgressIP {
			e := *x.world.EgressIP(name)
			e.Items = []world.Assignment{{Node: to, IP: heldIP}}
			return &e
		}
		x.says(stranger)
		if x.after(time.Minute); x.announces() != want || want && x.asked != 1 {
			t.Errorf("it is %s's: announces %t, want %t; asked %d times", to, x.announces(), want, x.asked)
		}
	}
}

// TestAnswerOvertakesTheWatch: the watch brings a moment later what the API server has answered. The successor has as
// long to report that it holds the address as without a question.
func TestAnswerOvertakesTheWatch(t *testing.T) {
	x := newNode(t, heldIP)
	holds(x.world, "n1")
	x.knows = func(string) *world.EgressIP {
		e := *x.world.EgressIP("e0")
		e.Items = []world.Assignment{{Node: "n2", IP: heldIP}}
		return &e
	}
	x.says(successor)
	x.after(holder.NewsWait)
	x.edit(moves)
	if x.after(holder.DrainFor - holder.NewsWait); x.announces() || !x.translates() {
		t.Errorf("announces %t, translates %t", x.announces(), x.translates())
	}
	if x.after(2 * holder.DrainFor); !x.announces() {
		t.Error("is needed again and does not announce")
	}
}

// TestRivalWhileAPIServerIsAway: a machine that this node has defended an address against does not get it because the
// API server does not answer once.
func TestRivalWhileAPIServerIsAway(t *testing.T) {
	x := newNode(t, heldIP)
	x.says(stranger)
	for range 10 {
		x.after(3 * time.Second)
		x.answer = errAway
		if x.says(stranger); !x.announces() {
			t.Fatal("yields to a machine that the API server has been asked about")
		}
	}
}

// TestFormerHolderAgain: a node that has given way to this one claims the address again while the API server does not
// answer yet. The address has moved back.
func TestFormerHolderAgain(t *testing.T) {
	x := newNode(t, heldIP)
	x.says(successor)
	x.after(10 * time.Second)
	x.answer = errAway
	x.says(successor)
	if x.after(holder.NewsWait); x.announces() {
		t.Error("keeps the address")
	}
}

// TestNodeWithoutAgentGoesOn: a node that goes on claiming an address, when this one has announced it and asked who has
// it, answers without its agent. It does not get the address because the API server does not answer once.
func TestNodeWithoutAgentGoesOn(t *testing.T) {
	x := newNode(t, heldIP)
	x.says(successor)
	x.after(10 * time.Second)
	x.says(successor)
	x.after(holder.NewsWait)
	x.answer = errAway
	for n := len(x.announced); len(x.announced) == n; {
		x.after(10 * time.Millisecond)
	}
	x.after(10 * time.Millisecond)
	for range 2 {
		x.says(successor)
		if x.after(3 * holder.NewsWait); !x.announces() {
			t.Error("gives the address away")
		}
	}
}

// TestAnnouncesNothingAdopted: an agent that starts while the API server is out of reach does not announce what its
// former process held when another node is back: it may be another's by now.
func TestAnnouncesNothingAdopted(t *testing.T) {
	x := newNode(t, heldIP)
	x.adopt()
	x.facts.APISilent, x.facts.Back = true, true
	x.step()
	if x.after(2 * holder.LookEvery); len(x.announced) > 0 {
		t.Errorf("announced %d times", len(x.announced))
	}
}

// TestAdoptedAddressOfAnother: an agent that starts, and whose first lists are late, yields what its former process
// held to another machine if the API server says that it is another node's by now. It keeps what is still its own.
func TestAdoptedAddressOfAnother(t *testing.T) {
	for node, keeps := range map[string]bool{"n1": true, "n2": false} {
		x := newNode(t, heldIP)
		x.adopt()
		x.knows = func(name string) *world.EgressIP {
			e := *x.world.EgressIP(name)
			e.Items = []world.Assignment{{Node: node, IP: heldIP}}
			return &e
		}
		x.says(stranger)
		if x.after(time.Second); x.asked == 0 || x.announces() != keeps {
			t.Errorf("assigned to %s: asked %d times, announces: %t", node, x.asked, x.announces())
		}
	}
}

// TestToleratesAHandover: a former holder that answers a moment longer is no conflict; one that goes on is. On
// secondary links nodes do not know each other's hardware addresses, so that any machine may be one.
func TestToleratesAHandover(t *testing.T) {
	for mac, onLink := range map[string]bool{successor: false, stranger: true} {
		x := newNode(t, heldIP)
		if onLink {
			h := *x.world.Host()
			h.Primary = nil
			subnet := netip.PrefixFrom(heldIP.Prev(), 24)
			h.Links = []world.Link{{Name: "eth1", Index: 3, MAC: "02:00:00:00:00:31", Addrs: []netip.Prefix{subnet}}}
			x.edit(func(w *world.World) { w.SetHost(&h) })
			if dev := x.facts.Holds.Addresses[heldIP].Announcement.Dev; dev != "eth1" {
				t.Fatalf("it is on %s", dev)
			}
		}
		for range 5 {
			x.says(mac)
			x.after(holder.NewsWait)
			if c := x.Conflicts(); len(c) != 0 || !x.announces() {
				t.Fatalf("conflicts %v, announces %t", c, x.announces())
			}
			x.after(time.Second - holder.NewsWait)
		}
		x.says(mac)
		if c := x.Conflicts(); len(c) != 1 || !x.announces() {
			t.Errorf("conflicts %v, announces %t", c, x.announces())
		}
	}
}

// TestIsReceivedLast: what a former holder says of an address is put right soon after each time, and once more when it
// has let go.
func TestIsReceivedLast(t *testing.T) {
	x := newNode(t, heldIP)
	e := *x.world.EgressIP("e0")
	e.Leaving = []world.Leaving{{Node: "n2", IP: heldIP}}
	x.world.SetEgressIP(&e)
	x.edit(func(w *world.World) { holds(w, "n2") })
	for range 3 {
		x.says(successor)
		last := x.now
		x.after(holder.NewsWait + 2*holder.CorrectEvery)
		if d := x.announced; len(d) == 0 || !d[len(d)-1].After(last) {
			t.Fatalf("received at %v, put right at %v", last, d)
		}
	}
	n := len(x.announced)
	x.after(5 * time.Second)
	if now := len(x.announced); now != n {
		t.Errorf("announces on, %d times", now-n)
	}
	x.edit(func(w *world.World) { w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2"}) })
	if now := len(x.announced); now != n+1 {
		t.Errorf("announced %d times after the other had let go, want once", now-n)
	}
}

func TestProbesWhileSilent(t *testing.T) {
	x := newNode(t, heldIP)
	if x.after(3 * holder.LookEvery); x.probed != 0 {
		t.Fatalf("%d probes though all is well", x.probed)
	}
	x.facts.APISilent = true
	if x.after(3 * holder.LookEvery); x.probed != 3 {
		t.Errorf("%d probes in 3 s", x.probed)
	}
}

// TestWasCutOff: a node that gets answers of others again asks the link at once who has what it holds, and yields to a
// node that has been given it meanwhile without waiting for the API server's news. A stranger is no such node.
func TestWasCutOff(t *testing.T) {
	x := newNode(t, heldIP)
	if x.alone(false); x.probed > 0 {
		t.Error("asks the link though it never was cut off")
	}
	x.alone(true)
	x.after(time.Minute)
	before := x.probed
	if x.alone(false); x.probed == before {
		t.Error("does not ask the link who has what it holds")
	}
	if x.says(stranger); x.yields() != nil {
		t.Error("yields to a stranger")
	}
	x.answer = errAway
	asked := x.asked
	x.says(successor)
	if y := x.yields(); y == nil || y.To != "n2" || x.asked != asked {
		t.Errorf("yields %v, asked %d times", y, x.asked-asked)
	}
	x.answer, x.brings = nil, moves
	x.after(5 * time.Second)
	if x.yields() != nil || x.announces() {
		t.Errorf("after the API server has told: still yields %v, announces %t", x.yields(), x.announces())
	}
}

// TestAnnouncesWhatOthersMissed: a node that was down hears again what is held, once in a while however often it comes
// and goes, and not before this one is sure of it.
func TestAnnouncesWhatOthersMissed(t *testing.T) {
	x := newNode(t, heldIP)
	back := func() {
		x.facts.Back = true
		x.step()
	}
	if x.after(time.Minute); len(x.announced) > 0 {
		t.Fatalf("announced %d times though all is well", len(x.announced))
	}
	back()
	if x.after(holder.LookEvery); len(x.announced) != 1 {
		t.Fatalf("announced %d times to a node that is back, want once", len(x.announced))
	}
	for range 5 {
		back()
		x.after(holder.LookEvery)
	}
	if len(x.announced) != 1 {
		t.Errorf("announced %d times while a tunnel comes and goes", len(x.announced))
	}
	if x.after(holder.DefendEvery); len(x.announced) != 2 {
		t.Errorf("announced %d times after a tunnel came and went, want twice", len(x.announced))
	}
	x.after(time.Minute)
	x.alone(true)
	x.alone(false)
	back()
	if x.after(holder.UnsureFor - holder.LookEvery); len(x.announced) != 2 {
		t.Error("announced though others may have been given what it holds")
	}
	if x.after(2 * holder.LookEvery); len(x.announced) != 3 {
		t.Errorf("announced %d times once it is sure, want 3", len(x.announced))
	}
}

// TestAnnouncesSomeAtOnce: many addresses are announced some at a time, each once.
func TestAnnouncesSomeAtOnce(t *testing.T) {
	x := newNode(t, heldIP)
	x.early = true // no plan changes what it holds
	many := &holder.Holds{Addresses: map[netip.Addr]holder.Held{}}
	for i := range 2*holder.SentALook + 50 {
		ip := netip.AddrFrom4([4]byte{172, 18, byte(1 + i>>8), byte(i)})
		many.Addresses[ip] = holder.Held{EgressIP: "e0", Announcement: plan.Announcement{IP: ip}}
	}
	x.facts.Holds, x.facts.Back = many, true
	for look, want := range []int{100, 200, 250, 250} {
		if x.after(holder.LookEvery); len(x.announced) != want {
			t.Errorf("after look %d %d are announced, want %d", look, len(x.announced), want)
		}
	}
}

// TestStoodStill: a node whose agent stood still is like one that was cut off. It finds the claims of that time, before
// the API server's news.
func TestStoodStill(t *testing.T) {
	x := newNode(t, heldIP)
	x.after(10 * time.Second)
	x.answer, x.now = errAway, x.now.Add(time.Minute)
	before := x.probed
	if x.step(); x.probed == before {
		t.Error("does not ask the link who has what it holds")
	}
	asked := x.asked
	if x.says(successor); x.yields() == nil || x.yields().To != "n2" || x.asked != asked || len(x.announced) > 0 {
		t.Errorf("yields %v, asked %d times, announced %d times", x.yields(), x.asked-asked, len(x.announced))
	}
}

// TestHoldsSinceItWasAlone: what a node was given after it had been alone is its own, whatever the former holder still
// says.
func TestHoldsSinceItWasAlone(t *testing.T) {
	x := newNode(t, heldIP)
	x.alone(true)
	x.edit(moves)
	x.after(time.Second)
	x.alone(false)
	x.after(time.Second)
	x.edit(func(w *world.World) {
		e := *w.EgressIP("e0")
		e.Items, e.Leaving = []world.Assignment{{Node: "n1", IP: heldIP}}, []world.Leaving{{Node: "n2", IP: heldIP}}
		w.SetEgressIP(&e)
	})
	asked := x.asked
	if x.says(successor); x.yields() != nil {
		t.Errorf("yields %v before it has asked", x.yields())
	}
	x.after(time.Second)
	if x.yields() != nil || !x.announces() || x.asked == asked {
		t.Errorf("yields %v, announces %t, asked %d times", x.yields(), x.announces(), x.asked-asked)
	}
}

// TestFlood: many machines that claim an address are one conflict: few are remembered, the API server is hardly
// asked, and another node that claims the address is still known for one.
func TestFlood(t *testing.T) {
	x := newNode(t, heldIP)
	for i := range 20 {
		var macs []string
		for j := range 1000 {
			macs = append(macs, net.HardwareAddr{2, 9, 0, byte(i), byte(j >> 8), byte(j)}.String())
		}
		x.says(macs...)
		x.now = x.now.Add(100 * time.Millisecond)
	}
	x.says(successor)
	x.after(time.Second)
	kept := x.Rivals(x.ip)
	if len(kept) > holder.RivalsKept+1 || !slices.Contains(kept, successor) {
		t.Errorf("%v are remembered, want some, and the node's", kept)
	}
	if x.asked > 5 {
		t.Errorf("the API server was asked %d times in two seconds", x.asked)
	}
	if c := x.Conflicts(); len(c) != 1 || c[0].IP != x.ip {
		t.Errorf("conflicts are %v", c)
	}
}

// TestNodeOfAHardwareAddress: a node that names another one's hardware address is not taken for it, whatever it is
// called.
func TestNodeOfAHardwareAddress(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	w.SetNode(&world.Node{Name: "a", ID: 9, UplinkMAC: compiletest.HardwareAddr(successor)})
	if have := holder.NodeAt(&w.View, successor); have != "n2" {
		t.Errorf("the node with n2's hardware address is %q", have)
	}
	w.DelNode("n2")
	if have := holder.NodeAt(&w.View, successor); have != "a" {
		t.Errorf("n2 is gone, and the node with its hardware address is %q", have)
	}
}

// TestDrainsOnlyWhatItYieldsUnasked: what the status takes away is let go of at once, or when status.leaving no
// longer lists it, though it was yielded, too.
func TestDrainsOnlyWhatItYieldsUnasked(t *testing.T) {
	x := newNode(t, heldIP)
	holds(x.world, "n1", "n2")
	x.edit(moves)
	x.says(successor)
	if x.announces() || !x.translates() {
		t.Fatalf("leaving: announces %t, translates %t", x.announces(), x.translates())
	}
	x.edit(func(w *world.World) {
		e := *w.EgressIP("e0")
		e.Leaving = nil
		w.SetEgressIP(&e)
	})
	if x.translates() {
		t.Error("translates, and is neither assigned the address nor leaving it")
	}
}

// TestLeavingLeadsNowhereAhead: a successor announces an address, as agents of before do though OVS may not have their
// flows yet. The former holder's own pods stay with it until the successor says that it holds the address; or, where
// the API server is silent and no report can come, go by the announcement.
func TestLeavingLeadsNowhereAhead(t *testing.T) {
	for silent, want := range map[bool]string{false: "n1", true: "n2"} {
		x := newNode(t, heldIP)
		holds(x.world, "n1")
		x.edit(moves)
		x.facts.APISilent = silent
		x.says(successor)
		if have := holder.LeadsOf(&x.world.View, "e0", heldIP).Ready; have != want || x.announces() || !x.translates() {
			t.Errorf("silent %t: leads to %q, want %q; announces %t, translates %t", silent, have, want,
				x.announces(), x.translates())
		}
		holds(x.world, "n2")
		if have := holder.LeadsOf(&x.world.View, "e0", heldIP).Ready; have != "n2" {
			t.Errorf("silent %t: the successor holds it, and packets are led to %q", silent, have)
		}
	}
}

// TestComesBackSoon: an address that comes back a moment after its successor announced it is led to by this node's own
// pods once this node holds it, and not before: until then the one that leaves it translates. This node answers for it.
func TestComesBackSoon(t *testing.T) {
	x := newNode(t, heldIP)
	holds(x.world, "n1")
	x.edit(moves)
	x.says(successor)
	holds(x.world, "n2")
	x.edit(func(w *world.World) {
		w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1"})
		e := *w.EgressIP("e0")
		e.Leaving = nil
		w.SetEgressIP(&e)
	})
	x.after(holder.DrainFor / 2)
	x.edit(func(w *world.World) {
		e := *w.EgressIP("e0")
		e.Items, e.Leaving = []world.Assignment{{Node: "n1", IP: heldIP}}, []world.Leaving{{Node: "n2", IP: heldIP}}
		w.SetEgressIP(&e)
	})
	if have := holder.LeadsOf(&x.world.View, "e0", heldIP).Ready; have != "n2" || !x.announces() || !x.translates() {
		t.Errorf("leads to %q; announces %t, translates %t", have, x.announces(), x.translates())
	}
	holds(x.world, "n1")
	if have := holder.LeadsOf(&x.world.View, "e0", heldIP).Ready; have != "n1" {
		t.Errorf("holds it, and leads to %q", have)
	}
}

// TestNotSteered: a node that is assigned an address and does not steer its own pods to it says so, once it lasts,
// with the reason, until that goes.
func TestNotSteered(t *testing.T) {
	x := newNode(t, heldIP)
	e := *x.world.EgressIP("e0")
	e.InForce[world.V4] = true
	x.edit(func(w *world.World) { w.SetEgressIP(&e) })
	after := func(d time.Duration, want string) {
		t.Helper()
		x.after(d)
		have := ""
		for _, p := range x.Problems() {
			have += p.Object.Name + ": " + p.Message
		}
		begins := want == "" || strings.HasPrefix(have, "e0: ")
		if (want == "") != (have == "") || !strings.Contains(have, want) || !begins {
			t.Errorf("problems are %q, want %q", have, want)
		}
	}
	own := func(boot string, ips ...netip.Addr) {
		x.world.SetOwn(&world.Holding{Node: "n1", BootID: boot, Holds: map[string][]netip.Addr{"e0": ips}})
	}
	after(time.Second, "")
	after(holder.UnsteeredFor-2*time.Second, "")
	after(2*time.Second, "does not have the flows")
	own("before", heldIP)
	after(time.Second, "booted as boot-n1, and this is before")
	own("boot-n1", heldIP)
	after(time.Second, "")
	own("boot-n1")
	after(time.Second, "")
}

// TestRenews: every few seconds, whether or not anything is held.
func TestRenews(t *testing.T) {
	x := newNode(t, heldIP)
	x.edit(func(w *world.World) { w.DelEgressIP("e0") })
	if x.after(time.Minute); x.renewed < 60/6 || x.renewed > 60/4 {
		t.Errorf("renewed %d times in a minute", x.renewed)
	}
}

// TestRenewsWithTheFirstPlan: at once then, and not before: what a former process left may be another node's by now.
func TestRenewsWithTheFirstPlan(t *testing.T) {
	x := newNode(t, heldIP)
	x.adopt()
	x.Machine, x.renewed = &holder.Machine{Self: "n1"}, 0
	x.step()
	if x.after(7 * time.Second); x.renewed != 0 {
		t.Errorf("renewed %d times though the cluster is not known", x.renewed)
	}
	x.early = false
	if x.step(); x.renewed != 1 {
		t.Errorf("renewed %d times with the first plan, want once", x.renewed)
	}
	if x.after(6 * time.Second); x.renewed != 2 {
		t.Errorf("renewed %d times in the 6 s after the first plan, want twice", x.renewed)
	}
}

// TestRenewsLateAfterAStandstill: the lease has ended meanwhile, and the addresses may be another node's.
func TestRenewsLateAfterAStandstill(t *testing.T) {
	x := newNode(t, heldIP)
	x.after(10 * time.Second)
	x.now, x.renewed = x.now.Add(25*time.Second), 0
	x.step()
	if x.after(4 * time.Second); x.renewed != 0 {
		t.Errorf("renewed %d times in the 4 s after a standstill", x.renewed)
	}
	if x.after(2 * time.Second); x.renewed != 1 {
		t.Errorf("renewed %d times in the 6 s after a standstill, want once", x.renewed)
	}
}
