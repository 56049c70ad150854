package probe

import (
	"net/netip"
	"slices"
	"time"
)

// Witnesses are machines beside the nodes. An answer of one proves, where no other node answers, that this host is not
// cut off.
type Witnesses struct {
	// From are this host's own addresses on the network by which nodes are reached. An answer that came to another
	// address, by another link or from this host itself, proves nothing.
	From []netip.Addr
	// Hosts are knocked at: default gateways, and whom people name.
	Hosts []netip.Addr
}

// Heard takes in that a machine answered over a connection from an address of this host.
func (p *Prober) Heard(from, machine netip.Addr) {
	if w := p.witnesses.Load(); from != machine && slices.Contains(w.From, from.Unmap()) {
		p.witnessed.Store(int64(p.sinceStart()))
	}
}

// askWitnesses knocks at the witnesses' doors. Where there are several other nodes these are witnesses enough as long
// as one answers.
func (p *Prober) askWitnesses(now time.Duration) {
	if now < p.witnessDue || !p.needsWitness(now) {
		return
	}
	p.witnessDue = now + p.knockInterval()
	for _, h := range p.witnesses.Load().Hosts {
		p.knocker.knockAt(netip.AddrPortFrom(h, uint16(p.door)), false, func(a answer) { p.Heard(a.from, h) })
	}
}

func (p *Prober) needsWitness(now time.Duration) bool {
	others, answering := 0, 0
	for name, x := range p.peers {
		if name == p.o.Self {
			continue
		}
		if others++; now-time.Duration(x.host.Load()) < p.o.Total/2 {
			answering++
		}
	}
	return others == 1 || others > 1 && answering == 0
}

// testimony is what the witnesses' answers prove, as they come. The zero value proves nothing.
type testimony struct {
	began, last time.Duration // of answers without a pause as long as Total; 0: there was none
}

func (t *testimony) noteAnswer(answered, total time.Duration) {
	if answered <= t.last {
		return
	}
	if t.last == 0 || answered-t.last >= total {
		t.began = answered
	}
	t.last = answered
}

// contradictsNode says whether witnesses answered this host all the time in which a node that was heard last at a time
// could have answered, too: when it had been silent for half of Total, and for twice Total, for where this host was cut
// off they may answer again before nodes do.
func (t testimony) contradictsNode(heard, now, total time.Duration) bool {
	return t.last > 0 && now-t.last < total && t.last-t.began >= 2*total && t.last-heard >= total/2
}
