package node

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// Times of the guard.
const (
	// newsWait is how long the watch may take to bring what another node of the cluster knows already.
	newsWait = 200 * time.Millisecond
	// askWait is how long the API server may take to answer.
	askWait = time.Second
	// guardTick is how often the guard looks round.
	guardTick = time.Second
	// claimantsAnIP is how many machines are remembered that claim one address: a conflict is told of one of them.
	claimantsAnIP = 16
	// askedFor is how long an answer of the API server about an address stands for further claims to it; its watch tells what changes.
	askedFor = time.Second
	// probesATick bounds what is asked of the link while this node cannot be sure of what it holds.
	probesATick = 100
	// unsureFor is how long a node that was cut off from all others is not sure: the API server's news come over connections that were cut off as
	// well, and TCP tries those again at growing distances.
	unsureFor = 15 * time.Second
)

// guard sees to it that an address has one holder. It hears other machines claim what this node holds. If Kubernetes does not name this node for it
// any more, or cannot be reached, this node gives way: the address goes on being translated for the time of linger, and nobody is answered.
// Otherwise it is defended, and the conflict reported.
//
// All fields belong to the loop; other goroutines only ask, and tell the loop.
type guard struct {
	self    string
	do      func(Change)
	ask     func(ctx context.Context, egressIP string) (*world.EgressIP, error) // the API server, and puts the answer into the world
	silence func() time.Duration                                                // of the API server
	defend  func(netip.Addr)
	probe   func(plan.Announcement)
	log     *slog.Logger

	held      map[netip.Addr]string // announced here; to EgressIP
	how       map[netip.Addr]plan.Announcement
	adopted   bool                // what is held is what a former process left, and the cluster is not known yet
	shared    map[netip.Addr]bool // another node says that it holds it, too
	asking    bool
	waiting   []listen.Claim           // for the answer
	asked     map[netip.Addr]time.Time // when the API server last said that an address is this node's
	contested map[claimant]*contest
	defended  map[netip.Addr]time.Time     // last, of those that were contested
	yielded   map[world.EgressAddress]bool // for lack of the API server
	next      netip.Addr                   // the first to be probed
	cutOff    bool                         // no other node is heard
	rejoined  time.Time                    // when one was heard again; zero if that never was
}

func newGuard(self string, do func(Change), log *slog.Logger) *guard {
	return &guard{
		self: self, do: do, log: log, held: map[netip.Addr]string{}, how: map[netip.Addr]plan.Announcement{}, contested: map[claimant]*contest{}, defended: map[netip.Addr]time.Time{},
		yielded: map[world.EgressAddress]bool{}, asked: map[netip.Addr]time.Time{},
	}
}

// run hears claims until ctx is done.
func (g *guard) run(ctx context.Context, claims <-chan listen.Claim) {
	tick := time.NewTicker(guardTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-claims:
			g.inTurn(ctx, func(w *world.World) []world.Touch { return g.heard(ctx, w, c) })
		case <-tick.C:
			g.inTurn(ctx, func(w *world.World) []world.Touch { return g.look(ctx, w) })
		}
	}
}

// inTurn does one thing after the other: what others send never fills the loop's queue.
func (g *guard) inTurn(ctx context.Context, change Change) {
	done := make(chan struct{})
	g.do(func(w *world.World) []world.Touch {
		defer close(done)
		return change(w)
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// adopt takes in what a former process left in OVN, which answers for it with a hardware address on a device, until the first plan. If the API server cannot be
// reached that may be long, and others may have been given it.
func (g *guard) adopt(rows []plan.RowID, device, mac string) (own map[netip.Addr]string, devices []string) {
	own, g.adopted = map[netip.Addr]string{}, true
	for _, r := range rows {
		if e, is := egressip.Adopted(r); is {
			own[e.IP], g.held[e.IP] = mac, e.Object.Name
			g.how[e.IP] = plan.Announcement{Dev: device, IP: e.IP, MAC: mac}
		}
	}
	return own, []string{device}
}

// holds takes in what a plan announces, and returns it as the ear wants it.
func (g *guard) holds(s *plan.State) (own map[netip.Addr]string, devices []string) {
	own, g.adopted = map[netip.Addr]string{}, false
	clear(g.held)
	clear(g.how)
	for e, a := range s.Answered.Rows() {
		if name, held := g.held[a.IP]; held && name < e.Object.Name {
			continue
		}
		own[a.IP], g.held[a.IP], g.how[a.IP] = a.MAC, e.Object.Name, a
		if !slices.Contains(devices, a.Dev) {
			devices = append(devices, a.Dev)
		}
	}
	gone := func(ip netip.Addr) bool { _, held := g.held[ip]; return !held }
	maps.DeleteFunc(g.contested, func(c claimant, _ *contest) bool { return gone(c.ip) })
	maps.DeleteFunc(g.defended, func(ip netip.Addr, _ time.Time) bool { return gone(ip) })
	maps.DeleteFunc(g.asked, func(ip netip.Addr, _ time.Time) bool { return gone(ip) })
	g.left(s)
	return own, devices
}

// left announces the addresses again that another node has let go of: some host outside may have heard it last.
func (g *guard) left(s *plan.State) {
	shared := map[netip.Addr]bool{}
	for e := range s.Forwarded.Rows() {
		shared[e.IP] = true
	}
	for ip := range g.shared {
		if _, held := g.held[ip]; held && !shared[ip] {
			go g.defend(ip)
		}
	}
	g.shared = shared
}

// heard decides about a claim, or asks the API server first.
func (g *guard) heard(ctx context.Context, w *world.World, c listen.Claim) []world.Touch {
	name, held := g.held[c.IP]
	if !held || isThisHost(w.Host(), c.MAC) {
		return nil
	}
	if g.contested[claimant{c.IP, c.MAC}] != nil && g.silence() < kube.Silent && named(w, g.self, name, c.IP) {
		return g.contend(w, c) // asked already
	}
	if g.mustYield(w, name, c) {
		return g.yield(w, c)
	}
	if time.Since(g.asked[c.IP]) < askedFor {
		return g.contend(w, c) // asked a moment ago, about another claim
	}
	g.wait(c)
	if !g.asking {
		g.asking = true
		go g.inquire(ctx, name, mayBeOurs(w, c))
	}
	return nil
}

// wait keeps a claim until the API server has answered, unless enough others to the same address are kept.
func (g *guard) wait(c listen.Claim) {
	same := 0
	for _, x := range g.waiting {
		if x == c {
			return
		}
		if x.IP == c.IP {
			same++
		}
	}
	if same < claimantsAnIP {
		g.waiting = append(g.waiting, c)
	}
}

// mustYield says whether there is nothing to ask: Kubernetes names another node, or is out of reach; or this node was, and another one says that it has the
// address.
func (g *guard) mustYield(w *world.World, name string, c listen.Claim) bool {
	another := !g.adopted && !named(w, g.self, name, c.IP)
	return another || g.silence() >= kube.Silent || g.wasCutOff() && nodeAt(w, c.MAC) != ""
}

// alone is told whether no other node is heard, which is known as soon as the link is gone, and as soon as it is back: others may have been given
// what this node holds, so it asks the link at once.
func (g *guard) alone(is bool) {
	if g.cutOff && !is {
		g.rejoined = time.Now()
		g.probeSome()
	}
	g.cutOff = is
}

func (g *guard) wasCutOff() bool {
	return g.cutOff || !g.rejoined.IsZero() && time.Since(g.rejoined) < unsureFor
}

// inquire asks the API server, for all claims that wait: it need not say more than that it is there, for then the watch brings the news.
func (g *guard) inquire(ctx context.Context, name string, wait bool) {
	if wait {
		select {
		case <-ctx.Done():
		case <-time.After(newsWait):
		}
	}
	timed, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	_, err := g.ask(timed, name)
	g.do(func(w *world.World) []world.Touch { return g.answered(w, err) })
}

func (g *guard) answered(w *world.World, err error) []world.Touch {
	claims := g.waiting
	g.asking, g.waiting = false, nil
	var touched []world.Touch
	for _, c := range claims {
		name, held := g.held[c.IP]
		switch {
		case !held, g.adopted && err == nil: // the cluster is about to be known
		case err != nil || !named(w, g.self, name, c.IP):
			touched = append(touched, g.yield(w, c)...)
		default:
			g.asked[c.IP] = time.Now()
			touched = append(touched, g.contend(w, c)...)
		}
	}
	return touched
}

// look ends conflicts that were not heard of for long, and looks for others while the API server is silent, or this node was cut off: then nobody tells
// it that an address is another's by now. What it has given way for it takes back when the API server says so.
func (g *guard) look(ctx context.Context, w *world.World) []world.Touch {
	now := time.Now()
	for who, x := range g.contested {
		if now.Sub(x.last) > conflictFor {
			delete(g.contested, who)
			continue
		}
		g.stand(who.ip, x, now)
	}
	if g.adopted || g.silence() >= kube.Silent || g.wasCutOff() {
		g.probeSome()
	}
	if len(g.yielded) > 0 && !g.asking {
		g.asking = true
		go g.takeBack(ctx, slices.SortedFunc(maps.Keys(g.yielded), world.EgressAddress.Compare))
	}
	return nil
}

// probeSome asks for some of what is held, in turn.
func (g *guard) probeSome() {
	ips := slices.SortedFunc(maps.Keys(g.held), netip.Addr.Compare)
	from, _ := slices.BinarySearchFunc(ips, g.next, netip.Addr.Compare)
	ips = slices.Concat(ips[from:], ips[:from])
	if len(ips) > probesATick {
		g.next = ips[probesATick]
		ips = ips[:probesATick]
	}
	var asked []plan.Announcement
	for _, ip := range ips {
		asked = append(asked, g.how[ip])
	}
	go func() {
		for _, a := range asked {
			g.probe(a)
		}
	}()
}
