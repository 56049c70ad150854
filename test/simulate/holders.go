package simulate

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/test/oracle"
)

// translation is for whom a node translates to an address.
type translation struct {
	object string
	byOVN  bool // or its kernel does
}

// translations returns the addresses that the node's targets translate to.
func (m *machine) translations() map[netip.Addr]translation {
	all := map[netip.Addr]translation{}
	for id := range m.have.NB.Rows() {
		if e, is := egressip.Adopted(id); is {
			all[e.IP] = translation{"egressip/" + e.Object.Name, true}
		}
	}
	for rule, text := range m.have.NFTRules.Rows() {
		if before, to, is := strings.Cut(text, " snat ip"); is && strings.Contains(before, " saddr @") {
			_, to, _ = strings.Cut(to, " to ")
			object, _, _ := strings.Cut(strings.TrimSuffix(rule.Name, "/"+to), " ")
			if ip, err := netip.ParseAddr(to); err == nil {
				all[ip] = translation{object, false}
			}
		}
	}
	return all
}

// noteTranslations takes in what a node translates to. An address is assigned to an object only when no node translates
// to it for another one: pods of both would leave with it. No node waits for a machine whose Node is gone. A node that
// could not follow the assignment carries out late what it began before. After a restore nobody knows what a node holds
// that cannot say so, and the restored statuses assign addresses at once.
func (v *verdict) noteTranslations(m *machine) {
	now := m.translations()
	v.translates[m] = now
	for _, o := range v.s.all {
		for ip, of := range v.translates[o] {
			other, both := now[ip]
			excused := v.cannotFollow(m.name) || v.s.isGone(o) || v.s.api.reportsLost && v.cannotFollow(o.name) ||
				v.s.now.Sub(v.s.api.forked) < oracle.Promise
			if both && other.object != of.object && !excused && v.wrong == "" {
				v.wrong = fmt.Sprintf("%v: %s translates to %v for %s, while %s still does for %s", v.s.told(),
					m.name, ip, other.object, o.name, of.object)
			}
		}
	}
}

// tick is how often answers are judged.
const tick = 200 * time.Millisecond

// answered is an address that two nodes answer for while the agents of both run, or of one alone.
type answered struct {
	ip   netip.Addr
	a, b *machine
	run  bool
}

// judgeAnswers fails the run if two nodes that receive each other both answer ARP or NDP for an address for longer than
// they may.
func (v *verdict) judgeAnswers() {
	both := map[answered]time.Time{}
	for i, a := range v.s.all {
		for ip := range v.translates[a] {
			for _, b := range v.s.all[i+1:] {
				if !a.answersFor(ip) || !b.answersFor(ip) || mayBothAnswer(ip, a, b) {
					continue
				}
				x := answered{ip, a, b, a.process.runs() && b.process.runs()}
				if both[x] = v.both[x]; both[x].IsZero() {
					both[x] = v.s.now
				}
				if d := v.s.now.Sub(both[x]); d > bothFor[x.run] && v.wrong == "" {
					v.wrong = fmt.Sprintf("%v: %s and %s have both answered for %v for %v", v.s.told(), a.name, b.name,
						ip, d)
				}
			}
		}
	}
	v.both = both
}

// mayBothAnswer reports whether nothing can keep one of two nodes from answering: they do not receive each other, one
// cannot write its targets, no agent runs, or one does not and the address is on links.
func mayBothAnswer(ip netip.Addr, a, b *machine) bool {
	one, both := a.process.runs() || b.process.runs(), a.process.runs() && b.process.runs()
	return !a.receives(b) || a.cannotWrite() || b.cannotWrite() || !one ||
		!both && (a.hasOnLink(ip) || b.hasOnLink(ip))
}

// bothFor is for how long two nodes may both answer: what a move takes, if the agents of both run, else the lease.
var bothFor = map[bool]time.Duration{true: oracle.Promise, false: answerLease + oracle.Promise}
