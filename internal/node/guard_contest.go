package node

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// Times of a conflict.
const (
	// defendEvery is RFC 5227's DEFEND_INTERVAL: a conflict that lasts is not fought over more often.
	defendEvery = 10 * time.Second
	// correctEvery is the same towards a node of the cluster, which gives way: what counts is that hosts outside hear the right one last.
	correctEvery = time.Second
	// conflictFor is how long a claim counts after it was last heard.
	conflictFor = 30 * time.Second
	// handover is how long another node of the cluster may go on answering before that is a conflict to tell people of.
	handover = 4 * time.Second
)

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

// contend keeps the address and says so.
func (g *guard) contend(w *world.World, c listen.Claim) []world.Touch {
	now, who := time.Now(), claimant{c.IP, c.MAC}
	x := g.contested[who]
	if x == nil && g.isFull(c) && nodeAt(w, c.MAC) == "" {
		g.stand(c.IP, &contest{last: now}, now)
		return nil
	}
	if x == nil {
		x = &contest{node: nodeAt(w, c.MAC), ours: mayBeOurs(w, c), first: now}
		g.contested[who] = x
		g.log.Warn("another machine says that it has an egress IP of this node", "egressIP", g.held[c.IP], "ip", c.IP, "mac", c.MAC, "node", x.node)
	}
	x.last = now
	g.stand(c.IP, x, now)
	return nil
}

// isFull says whether enough machines are remembered that claim an address.
func (g *guard) isFull(c listen.Claim) bool {
	same := 0
	for who := range g.contested {
		if who.ip == c.IP {
			same++
		}
	}
	return same >= claimantsAnIP
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
