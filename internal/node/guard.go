package node

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
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
	// defendEvery is RFC 5227's DEFEND_INTERVAL: a conflict that lasts is not fought over more often.
	defendEvery = 10 * time.Second
	// correctEvery is the same towards a node of the cluster, which gives way: what counts is that hosts outside hear the right one last.
	correctEvery = time.Second
	// conflictFor is how long a claim counts after it was last heard.
	conflictFor = 30 * time.Second
	// handover is how long another node of the cluster may go on answering before that is a conflict to tell people of.
	handover = 4 * time.Second
	// guardTick is how often the guard looks round.
	guardTick = time.Second
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
	waiting   []listen.Claim // for the answer
	contested map[claimant]*contest
	defended  map[netip.Addr]time.Time // last, of those that were contested
	yielded   map[world.Claim]bool     // for lack of the API server
	next      netip.Addr               // the first to be probed
	cutOff    bool                     // no other node is heard
	rejoined  time.Time                // when one was heard again; zero if that never was
}

// claimant is a machine that says that it has an address of this node.
type claimant struct {
	ip  netip.Addr
	mac string
}

// contest is a conflict with one. A machine with two links into a network answers from both.
type contest struct {
	node        string // of the cluster; "" if it is not known to be one
	ours        bool   // it may be one
	first, last time.Time
}

func newGuard(self string, do func(Change), log *slog.Logger) *guard {
	return &guard{
		self: self, do: do, log: log, held: map[netip.Addr]string{}, how: map[netip.Addr]plan.Announcement{}, contested: map[claimant]*contest{}, defended: map[netip.Addr]time.Time{},
		yielded: map[world.Claim]bool{},
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
			g.do(func(w *world.World) []world.Touch { return g.heard(ctx, w, c) })
		case <-tick.C:
			g.do(func(w *world.World) []world.Touch { return g.look(ctx, w) })
		}
	}
}

// adopt takes in what a former process left in OVN, which answers for it with a hardware address on a device, until the first plan. If the API server cannot be
// reached that may be long, and others may have been given it.
func (g *guard) adopt(rows []plan.RowID, device, mac string) (own map[netip.Addr]string, devices []string) {
	own, g.adopted = map[netip.Addr]string{}, true
	for _, r := range rows {
		if c, is := egressip.TranslatesTo(r); is {
			own[c.IP], g.held[c.IP], g.how[c.IP] = mac, c.EgressIP, plan.Announcement{Dev: device, IP: c.IP, MAC: mac}
		}
	}
	return own, []string{device}
}

// holds takes in what a plan announces, and returns it as the ear wants it.
func (g *guard) holds(s *plan.State) (own map[netip.Addr]string, devices []string) {
	own, g.adopted = map[netip.Addr]string{}, false
	clear(g.held)
	clear(g.how)
	for a := range s.Announcements.Rows() {
		if name, is := strings.CutPrefix(s.Announcements.Owner(a), "egressip/"); is {
			own[a.IP], g.held[a.IP], g.how[a.IP] = a.MAC, name, a
			if !slices.Contains(devices, a.Dev) {
				devices = append(devices, a.Dev)
			}
		}
	}
	gone := func(ip netip.Addr) bool { _, held := g.held[ip]; return !held }
	maps.DeleteFunc(g.contested, func(c claimant, _ *contest) bool { return gone(c.ip) })
	maps.DeleteFunc(g.defended, func(ip netip.Addr, _ time.Time) bool { return gone(ip) })
	g.left(egressip.PassedOn(s))
	return own, devices
}

// left announces the addresses again that another node has let go of: some host outside may have heard it last.
func (g *guard) left(shared map[netip.Addr]bool) {
	for ip := range g.shared {
		if _, held := g.held[ip]; held && !shared[ip] {
			go g.defend(ip)
		}
	}
	g.shared = shared
}

// conflicts are those to report, in the order of what is held: of an address, the one with the first of its claimants, by hardware address.
func (g *guard) conflicts() []Conflict {
	var out []Conflict
	for who, c := range g.contested {
		if !c.ours || c.last.Sub(c.first) > handover {
			out = append(out, Conflict{Held{g.held[who.ip], who.ip}, who.mac})
		}
	}
	slices.SortFunc(out, func(a, b Conflict) int { return cmp.Or(a.compare(b.Held), cmp.Compare(a.MAC, b.MAC)) })
	return slices.CompactFunc(out, func(a, b Conflict) bool { return a.Held == b.Held })
}

// heard decides about a claim, or asks the API server first.
func (g *guard) heard(ctx context.Context, w *world.World, c listen.Claim) []world.Touch {
	name, held := g.held[c.IP]
	if !held || isThisHost(w.Host(), c.MAC) || g.adopted && g.silence() < kube.Silent {
		return nil
	}
	if g.contested[claimant{c.IP, c.MAC}] != nil && g.silence() < kube.Silent && named(w, g.self, name, c.IP) {
		return g.contend(w, c) // asked already
	}
	if !named(w, g.self, name, c.IP) || g.silence() >= kube.Silent || g.wasCutOff() && nodeAt(w, c.MAC) != "" {
		return g.yield(w, c)
	}
	if g.waiting = append(g.waiting, c); !g.asking {
		g.asking = true
		go g.inquire(ctx, name, mayBeOurs(w, c))
	}
	return nil
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
		case !held:
		case err != nil || !named(w, g.self, name, c.IP):
			touched = append(touched, g.yield(w, c)...)
		default:
			touched = append(touched, g.contend(w, c)...)
		}
	}
	return touched
}

// yield gives way. Where Kubernetes names another node that is only until the successor's report can be here: if none comes, the address is
// answered for again. Where Kubernetes is out of reach it is until it says again whose the address is.
func (g *guard) yield(w *world.World, c listen.Claim) []world.Touch {
	claim := world.Claim{EgressIP: g.held[c.IP], IP: c.IP}
	to := nodeAt(w, c.MAC)
	maps.DeleteFunc(g.contested, func(who claimant, _ *contest) bool { return who.ip == c.IP })
	if g.adopted || named(w, g.self, claim.EgressIP, c.IP) {
		g.log.Warn("gives way for an egress IP: another machine announces it, and the API server cannot be reached",
			"egressIP", claim.EgressIP, "ip", c.IP, "mac", c.MAC, "node", to)
		g.yielded[claim] = true
	} else {
		g.reconsider(claim)
	}
	return w.SetYielded(claim, to)
}

// reconsider ends what was given way for, when the time of a successor's report is over; not while one that this node does not hear says that it holds the
// address: it is heard by the link.
func (g *guard) reconsider(claim world.Claim) {
	time.AfterFunc(linger, func() {
		g.do(func(w *world.World) []world.Touch {
			switch {
			case g.yielded[claim]:
				return nil
			case heldUnheard(w, g.self, claim):
				g.reconsider(claim)
				return nil
			}
			return w.DelYielded(claim)
		})
	})
}

// heldUnheard says whether another node that Kubernetes names holds an address and is not alive as far as this one can tell.
func heldUnheard(w *world.World, self string, c world.Claim) bool {
	e := w.EgressIP(c.EgressIP)
	return e != nil && slices.ContainsFunc(e.Items, func(a world.Assignment) bool {
		return a.IP == c.IP && a.Node != self && w.Holds(a.Node, c.EgressIP, c.IP) && !w.Alive(a.Node)
	})
}

// contend keeps the address and says so.
func (g *guard) contend(w *world.World, c listen.Claim) []world.Touch {
	now, who := time.Now(), claimant{c.IP, c.MAC}
	x := g.contested[who]
	if x == nil {
		x = &contest{node: nodeAt(w, c.MAC), ours: mayBeOurs(w, c), first: now}
		g.contested[who] = x
		g.log.Warn("another machine says that it has an egress IP of this node", "egressIP", g.held[c.IP], "ip", c.IP, "mac", c.MAC, "node", x.node)
	}
	x.last = now
	g.stand(c.IP, x, now)
	return nil
}

// stand announces the address again, not more often than is fair, and asks who else has it; towards a node of the cluster, once after the last claim.
func (g *guard) stand(ip netip.Addr, x *contest, now time.Time) {
	pause := defendEvery
	if x.node != "" {
		pause = correctEvery
	}
	last := g.defended[ip]
	if now.Sub(last) < pause || x.node != "" && last.After(x.last) {
		return
	}
	g.defended[ip] = now
	go g.defend(ip)
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
	if g.silence() >= kube.Silent || g.wasCutOff() {
		g.probeSome()
	}
	if len(g.yielded) > 0 && !g.asking {
		g.asking = true
		go g.takeBack(ctx, slices.SortedFunc(maps.Keys(g.yielded), world.Claim.Compare))
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

// takeBack ends what was given way for, one EgressIP after the other, once the world says what the API server says of it.
func (g *guard) takeBack(ctx context.Context, claims []world.Claim) {
	var err error
	for _, c := range claims {
		var e *world.EgressIP
		timed, cancel := context.WithTimeout(ctx, askWait)
		e, err = g.ask(timed, c.EgressIP)
		cancel()
		if err != nil {
			break
		}
		g.do(func(w *world.World) []world.Touch { return g.resume(w, c, e) })
	}
	g.do(func(w *world.World) []world.Touch { return g.answered(w, err) })
}

// resume takes e, nil if there is none, for what the API server says.
func (g *guard) resume(w *world.World, c world.Claim, e *world.EgressIP) []world.Touch {
	have := w.EgressIP(c.EgressIP)
	if e != nil && (have == nil || !slices.Equal(have.Items, e.Items)) {
		return nil // the next look finds that it has come
	}
	delete(g.yielded, c)
	return w.DelYielded(c)
}

// named says whether Kubernetes names a node for an address.
func named(w *world.World, self, egressIP string, ip netip.Addr) bool {
	e := w.EgressIP(egressIP)
	return e != nil && slices.Contains(e.Items, world.Assignment{Node: self, IP: ip})
}

// isThisHost says whether a hardware address is this host's own. Linux asks for neighbours with any of its addresses on any link (arp_announce 0), so
// that an egress IP of one link is heard from another.
func isThisHost(h *world.Host, mac string) bool {
	return h != nil && (h.UplinkMAC == mac || slices.ContainsFunc(h.Links, func(l world.Link) bool { return l.MAC == mac }))
}

// mayBeOurs says whether a claim may be a node's of the cluster. On secondary links nodes do not tell each other their hardware addresses.
func mayBeOurs(w *world.World, c listen.Claim) bool {
	if h := w.Host(); h != nil {
		if _, link := h.Home(c.IP); link != nil {
			return true
		}
	}
	return nodeAt(w, c.MAC) != ""
}

// nodeAt is the node of the cluster whose gateway router has a hardware address, or "".
func nodeAt(w *world.World, mac string) string {
	for _, name := range w.Nodes() {
		if n := w.Node(name); n.UplinkMAC == mac {
			return name
		}
	}
	return ""
}
