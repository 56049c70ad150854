package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

const stranger, successor = "02:00:00:00:00:99", "02:00:00:00:00:02"

var contestedIP = compiletest.EgressAddr(0)[0]

// watched is a guard of n1 with a world of its own, in which n1 holds one address. What it has, and what the fakes around it note, belongs to its loop;
// tests reach it by inLoop, edit and the methods that call them.
type watched struct {
	*guard
	t       *testing.T
	ip      netip.Addr
	world   *world.World
	ear     *listen.Fake
	changes chan Change
	around
	early bool // no plan was applied yet
}

// around is what a guard meets, and did.
type around struct {
	silent    bool
	answer    error                // of the API server
	brings    func(w *world.World) // by the watch, before it answers
	asked     int
	announced []time.Time
	probed    int
}

func startGuard(t *testing.T) *watched { return startGuardOf(t, contestedIP) }

func startGuardOf(t *testing.T, ip netip.Addr) *watched {
	w := compiletest.Small("n1", world.SharedGateway)
	e := compiletest.EgressIP(0, "", ip)
	e.Items = []world.Assignment{{Node: "n1", IP: ip}}
	w.SetEgressIP(e)
	x := &watched{t: t, ip: ip, world: w, ear: listen.NewFake(), changes: make(chan Change, 100)}
	x.guard = newGuard("n1", func(c Change) { x.changes <- c }, slog.New(slog.DiscardHandler))
	x.guard.silence, x.guard.defend, x.guard.probe, x.guard.ask = x.isSilent, x.defends, x.probes, x.asks
	x.round()
	go x.run(t.Context(), x.ear.Claims())
	go x.loop()
	return x
}

// loop does with the guard what the agent's loop does.
func (x *watched) loop() {
	for {
		select {
		case <-x.t.Context().Done():
			return
		case c := <-x.changes:
			c(x.world)
			x.round()
		}
	}
}

func (x *watched) round() {
	if !x.early {
		x.ear.Watch(x.holds(compile.Full(x.world, all.Features())))
	}
}

// inLoop runs f where the world and the guard may be touched, and returns when it is done.
func (x *watched) inLoop(f func(w *world.World)) {
	done := make(chan struct{})
	x.changes <- func(w *world.World) []world.Touch {
		f(w)
		close(done)
		return nil
	}
	<-done
}

// edit is inLoop, and waits for what follows from it.
func (x *watched) edit(f func(w *world.World)) {
	x.inLoop(f)
	synctest.Wait()
}

// isSilent is called in the loop.
func (x *watched) isSilent() time.Duration {
	if x.silent {
		return kube.Silent
	}
	return 0
}

func (x *watched) defends(netip.Addr) {
	x.inLoop(func(*world.World) { x.announced = append(x.announced, time.Now()) })
}

func (x *watched) probes(a plan.Announcement) {
	x.inLoop(func(*world.World) {
		if a.IP == x.ip && a.Dev != "" && a.MAC != "" {
			x.probed++
		}
	})
}

func (x *watched) asks(context.Context, string) (e *world.EgressIP, err error) {
	x.inLoop(func(w *world.World) {
		x.around.asked++
		if x.answer == nil && x.brings != nil {
			x.brings(w)
		}
		e, err = w.EgressIP("e0"), x.answer
	})
	return e, err
}

// met is a copy of what the guard met and did.
func (x *watched) met() (have around) {
	x.inLoop(func(*world.World) {
		have = x.around
		have.announced = slices.Clone(x.announced)
	})
	return have
}

func (x *watched) reported() (cs []Conflict) {
	x.inLoop(func(*world.World) { cs = x.conflicts() })
	return cs
}

// yieldsTo is whom it has given way to, if it has.
func (x *watched) yieldsTo() (node string, yielded bool) {
	x.inLoop(func(w *world.World) { node, yielded = w.Yielded("e0", contestedIP) })
	return node, yielded
}

func (x *watched) plan() (s *plan.State) {
	x.inLoop(func(w *world.World) { s = compile.Full(w, all.Features()) })
	return s
}

func ids(s *plan.State) (out []plan.RowID) {
	for id := range s.NB.Rows() {
		out = append(out, id)
	}
	return out
}

func (x *watched) says(mac string) {
	x.ear.Say(listen.Claim{IP: x.ip, MAC: mac})
	synctest.Wait()
}

func (x *watched) answers() bool { return len(x.plan().Announcements) > 0 }

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func moves(w *world.World) {
	e := *w.EgressIP("e0")
	e.Items, e.Leaving = []world.Assignment{{Node: "n2", IP: contestedIP}}, []world.Leaving{{Node: "n1", IP: contestedIP}}
	w.SetEgressIP(&e)
}

// TestGuardKnowsItsOwnHost: the kernel asks for neighbours with an egress IP of another link.
func TestGuardKnowsItsOwnHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		x.edit(func(w *world.World) {
			h := *w.Host()
			h.Links = []world.Link{{Name: "eth1", MAC: stranger}}
			w.SetHost(&h)
			x.answer = errors.New("away")
		})
		x.says(stranger)
		after(5 * time.Second)
		if _, yielded := x.yieldsTo(); yielded || x.met().asked > 0 || len(x.reported()) > 0 {
			t.Errorf("took a packet of its own host for another machine's: gave way %t, asked %d times, conflicts %v", yielded, x.met().asked, x.reported())
		}
	})
}

// TestGuardDefendsAgainstStrangers: not more often than RFC 5227 allows, also on a secondary link, where a node of the cluster is not told from others.
func TestGuardDefendsAgainstStrangers(t *testing.T) {
	for name, ip := range map[string]netip.Addr{"primary": contestedIP, "secondary": compiletest.SecondaryAddr(0)[0]} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { startGuardOf(t, ip).againstStrangers() })
		})
	}
}

func (x *watched) againstStrangers() {
	for range 20 {
		x.says(stranger)
		after(time.Second)
	}
	m := x.met()
	if c := x.reported(); len(c) != 1 || c[0].MAC != stranger || c[0].EgressIP != "e0" || !x.answers() || m.asked != 1 {
		x.t.Fatalf("conflicts %v, answers %v, asked %d", c, x.answers(), m.asked)
	}
	if n := len(m.announced); n < 2 || n > 3 || m.announced[1].Sub(m.announced[0]) < defendEvery {
		x.t.Errorf("defended at %v", m.announced)
	}
	after(conflictFor + 2*guardTick)
	if c := x.reported(); len(c) != 0 {
		x.t.Errorf("still %v", c)
	}
}

// TestGuardAgainstTwoLinks: a machine with two links into the network answers from both, also when it is asked by the defence. That is one conflict.
func TestGuardAgainstTwoLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		const other = "02:00:00:00:00:98"
		for range 100 {
			x.says(stranger)
			x.says(other)
			if c := x.reported(); len(c) > 1 || len(c) == 1 && c[0].MAC != other && c[0].MAC != stranger {
				t.Fatalf("conflicts %v", c)
			}
			after(100 * time.Millisecond)
		}
		if m := x.met(); len(m.announced) > 2 || m.asked > 2 {
			t.Errorf("in 10 s defended %d times, asked the API server %d times", len(m.announced), m.asked)
		}
		if c := x.reported(); len(c) != 1 || c[0].MAC != other {
			t.Errorf("conflicts %v", c)
		}
	})
}

// TestGuardGivesWayToTheUnheard: the successor's tunnel to this node is cut, and the link they share is not. It answers, so this node does not.
func TestGuardGivesWayToTheUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		x.edit(func(w *world.World) {
			for _, node := range []string{"n1", "n2"} {
				w.SetHolding(&world.Holding{Node: node, BootID: "boot-" + node, Holds: map[string][]netip.Addr{"e0": {contestedIP}}})
			}
			w.SetTunnel("n2", world.TunnelDown)
			x.brings = moves
		})
		x.says(successor)
		after(time.Minute)
		if n := len(x.met().announced); x.answers() || n > 0 {
			t.Fatalf("answers %t, defended %d times", x.answers(), n)
		}
		x.edit(func(w *world.World) { w.SetTunnel("n2", world.TunnelUp) })
		after(2 * linger)
		if _, yielded := x.yieldsTo(); yielded || x.answers() {
			t.Errorf("heard: still gives way %t, answers %t", yielded, x.answers())
		}
	})
}

// TestGuardAfterRestartWithoutKubernetes: the agent was killed and started while the API server cannot be reached. Kubernetes has given the address to another
// node, and this one's OVN still answers for it.
func TestGuardAfterRestartWithoutKubernetes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		var e *world.EgressIP
		rows := ids(x.plan())
		x.edit(func(w *world.World) {
			e = w.EgressIP("e0")
			w.DelEgressIP("e0")
			x.early = true
			x.ear.Watch(x.adopt(rows, "breth0", "02:00:00:00:00:01"))
		})
		mutes := func() int {
			n := 0
			for f := range x.plan().Flows.Rows() {
				if strings.Contains(f.Match, contestedIP.String()) {
					n++
				}
			}
			return n
		}
		if x.says(successor); mutes() > 0 {
			t.Fatalf("the news is on its way, and %d flows keep it from answering", mutes())
		}
		x.edit(func(*world.World) { x.answer = errors.New("timeout") })
		if after(2 * guardTick); x.met().probed == 0 {
			t.Fatal("does not ask the link who has it")
		}
		x.says(successor)
		if after(newsWait); mutes() == 0 {
			t.Fatal("goes on answering though the API server does not answer")
		}
		after(time.Minute)
		if mutes() == 0 {
			t.Fatal("answers again, and nobody has said that it may")
		}
		x.edit(func(w *world.World) {
			x.answer, x.early = nil, false
			w.SetEgressIP(e)
		})
		after(2 * guardTick)
		if _, yielded := x.yieldsTo(); yielded || !x.answers() {
			t.Errorf("Kubernetes names it: still gives way %t, answers %t", yielded, x.answers())
		}
	})
}

func TestGuardGivesWayWithoutKubernetes(t *testing.T) {
	for name, cut := range map[string]func(*watched){
		"silent":    func(x *watched) { x.silent = true },
		"no answer": func(*watched) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := startGuard(t)
				x.edit(func(*world.World) {
					cut(x)
					x.answer = errors.New("timeout")
				})
				x.says(successor)
				after(newsWait)
				if to, yielded := x.yieldsTo(); !yielded || to != "n2" || x.answers() {
					t.Fatalf("yields to %q %v; answers %v", to, yielded, x.answers())
				}
				after(time.Minute)
				if x.answers() {
					t.Fatal("answers while the API server is away")
				}
				x.edit(func(*world.World) { x.silent, x.answer = false, nil })
				after(2 * guardTick)
				if _, yielded := x.yieldsTo(); yielded || !x.answers() {
					t.Error("does not take back what the API server says is its own")
				}
			})
		})
	}
}

// TestGuardWaitsForTheWatch: the successor of a planned move is heard before the watch tells of it.
func TestGuardWaitsForTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		x.edit(func(w *world.World) {
			w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{"e0": {contestedIP}}})
			x.brings = moves
		})
		x.says(successor)
		if n := x.met().asked; !x.answers() || n != 0 {
			t.Fatalf("answers %v, asked %d", x.answers(), n)
		}
		after(newsWait)
		if d := x.met().announced; x.answers() || len(d) != 0 || len(x.reported()) != 0 {
			t.Errorf("answers %v, defended %v, conflicts %v", x.answers(), d, x.reported())
		}
		if got := translates(x.plan()); len(got) != 1 {
			t.Errorf("translates %v: packets are still on their way here", got)
		}
		after(linger) // and the successor has not reported: it may have died
		if !x.answers() {
			t.Error("is needed again and does not answer")
		}
	})
}

// TestGuardToleratesAHandover: a former holder that answers a moment longer is no conflict; one that goes on is.
func TestGuardToleratesAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		for range 5 {
			x.says(successor)
			after(newsWait)
			if c := x.reported(); len(c) != 0 {
				t.Fatalf("conflicts %v", c)
			}
			after(time.Second - newsWait)
		}
		x.says(successor)
		if c := x.reported(); len(c) != 1 || !x.answers() {
			t.Errorf("conflicts %v", c)
		}
	})
}

// TestGuardIsHeardLast: what a former holder says of an address is put right soon after each time, and once more when it has let go.
func TestGuardIsHeardLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		e := *x.world.EgressIP("e0")
		e.Leaving = []world.Leaving{{Node: "n2", IP: contestedIP}}
		x.world.SetEgressIP(&e)
		n2 := func(holds bool) {
			h := &world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{}}
			if holds {
				h.Holds["e0"] = []netip.Addr{contestedIP}
			}
			x.edit(func(w *world.World) { w.SetHolding(h) })
		}
		defended := func() []time.Time { return x.met().announced }
		n2(true)
		for range 3 {
			x.says(successor)
			last := time.Now()
			after(newsWait + 2*correctEvery)
			if d := defended(); len(d) == 0 || !d[len(d)-1].After(last) {
				t.Fatalf("heard at %v, put right at %v", last, d)
			}
		}
		n := len(defended())
		after(5 * time.Second)
		if now := len(defended()); now != n {
			t.Errorf("announces on, %d times", now-n)
		}
		n2(false)
		if now := len(defended()); now != n+1 {
			t.Errorf("announced %d times after the other had let go, want once", now-n)
		}
	})
}

// TestGuardOnSecondaryLink: nodes do not know each other's hardware addresses there, so that any claim may be a former holder's for a moment.
func TestGuardOnSecondaryLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		eth1 := world.Link{Name: "eth1", Index: 3, MAC: "02:00:00:00:00:31", Addrs: []netip.Prefix{netip.PrefixFrom(contestedIP.Prev(), 24)}}
		var devices []string
		x.edit(func(w *world.World) {
			h := *w.Host()
			h.Primary, h.Links = nil, []world.Link{eth1}
			w.SetHost(&h)
			_, devices = x.holds(compile.Full(w, all.Features()))
		})
		if len(devices) != 1 || devices[0] != "eth1" {
			t.Fatalf("listens on %v", devices)
		}
		for range 5 {
			x.says(stranger)
			after(newsWait)
			if c := x.reported(); len(c) != 0 || !x.answers() {
				t.Fatalf("conflicts %v, answers %v", c, x.answers())
			}
			after(time.Second - newsWait)
		}
		x.says(stranger)
		if c := x.reported(); len(c) != 1 || !x.answers() {
			t.Errorf("conflicts %v, answers %v", c, x.answers())
		}
	})
}

func TestGuardProbesWhileSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		after(3 * guardTick)
		if n := x.met().probed; n != 0 {
			t.Fatalf("%d probes though all is well", n)
		}
		x.edit(func(*world.World) { x.silent = true })
		after(3 * guardTick)
		if n := x.met().probed; n != 3 {
			t.Errorf("%d probes in 3 s", n)
		}
	})
}

// TestGuardWasCutOff: a node that hears of others again asks the link at once who has what it holds, and gives way to a node that has been given it
// meanwhile without waiting for the API server's news. A stranger is no such node.
func TestGuardWasCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		alone := func(is bool) { x.edit(func(*world.World) { x.alone(is) }) }
		if alone(false); x.met().probed > 0 {
			t.Error("asks the link though it never was cut off")
		}
		alone(true)
		after(time.Minute)
		before := x.met().probed
		if alone(false); x.met().probed == before {
			t.Error("does not ask the link who has what it holds")
		}
		x.says(stranger)
		if _, yielded := x.yieldsTo(); yielded {
			t.Error("gives way to a stranger")
		}
		x.edit(func(*world.World) { x.answer = errors.New("the connection hangs") })
		asked := x.met().asked
		x.says(successor)
		if to, yielded := x.yieldsTo(); !yielded || to != "n2" || x.met().asked != asked {
			t.Errorf("gave way: %t, to %q, asked %d times", yielded, to, x.met().asked-asked)
		}
		x.edit(func(*world.World) { x.answer, x.brings = nil, moves })
		after(5 * time.Second)
		if _, yielded := x.yieldsTo(); yielded || x.answers() {
			t.Errorf("after the API server has told: still gives way %t, answers %t", yielded, x.answers())
		}
	})
}

// TestGuardFlood: 100,000 machines that claim an address are one conflict: few are remembered, the API server is hardly asked, and another node that claims the address
// is still known for one.
func TestGuardFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startGuard(t)
		for i := range 100_000 {
			x.ear.Say(listen.Claim{IP: x.ip, MAC: net.HardwareAddr{2, 9, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}.String()})
			if i%100 == 0 {
				time.Sleep(time.Millisecond) // 100,000 a second
			}
		}
		time.Sleep(time.Second)
		x.inLoop(func(*world.World) {
			if n := len(x.contested); n == 0 || n > claimantsAnIP {
				t.Errorf("%d claimants are remembered", n)
			}
			if len(x.waiting) > claimantsAnIP || x.around.asked > 5 {
				t.Errorf("%d claims wait; the API server was asked %d times in two seconds", len(x.waiting), x.around.asked)
			}
			if c := x.conflicts(); len(c) != 1 || c[0].IP != x.ip {
				t.Errorf("conflicts are %v", c)
			}
		})
		x.ear.Say(listen.Claim{IP: x.ip, MAC: successor})
		time.Sleep(time.Second)
		x.inLoop(func(*world.World) {
			if x.contested[claimant{x.ip, successor}] == nil {
				t.Error("the claim of a node is lost among the others")
			}
		})
	})
}

// TestNodeOfAHardwareAddress: a node that names another one's hardware address is not taken for it, whatever it is called.
func TestNodeOfAHardwareAddress(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	liar := &world.Node{Name: "a", ID: 9, UplinkMAC: compiletest.HardwareAddr(successor)}
	w.SetNode(liar)
	if have := nodeAt(w, successor); have != "n2" {
		t.Errorf("the node with n2's hardware address is %q", have)
	}
	w.DelNode("n2")
	if have := nodeAt(w, successor); have != "a" {
		t.Errorf("n2 is gone, and the node with its hardware address is %q", have)
	}
}
