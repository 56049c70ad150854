package simulate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// As in internal/plane/announce: when an address is announced again.
var repeats = []time.Duration{0, 100 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}

const announceEvery = time.Minute

// As in internal/feature/egressip: how long a lease lasts, and how long the switch remembers what others announced.
const (
	answerLease = 20 * time.Second
	silencedFor = 70 * time.Second
)

// announceNew announces the addresses that a plan, which has taken effect, announces newly.
func (m *machine) announceNew(want *plan.State) {
	for a := range want.Announcements.Rows() {
		if m.announced[a.IP] != a.MAC {
			m.announced[a.IP] = a.MAC
			process := m.process
			for _, d := range repeats {
				m.s.after(d, func() { m.announceAgain(process, a.IP) })
			}
		}
	}
}

// announceAll announces what the running agent has announced before.
func (m *machine) announceAll() {
	for _, ip := range slices.SortedFunc(maps.Keys(m.announced), netip.Addr.Compare) {
		m.announceAgain(m.process, ip)
	}
}

func (m *machine) announceAgain(by *process, ip netip.Addr) {
	if by == m.process && by.runs() && m.announced[ip] != "" {
		m.announce(ip)
	}
}

// dropAnnounced stops announcing addresses that a plan does not announce.
func (m *machine) dropAnnounced(want *plan.State) {
	wanted := compiletest.Rows(want.Announcements)
	maps.DeleteFunc(m.announced, func(ip netip.Addr, mac string) bool {
		for a := range wanted {
			if a.IP == ip && a.MAC == mac {
				return false
			}
		}
		return true
	})
}

// announce tells the other nodes that this one has an address, and asks them who has it.
func (m *machine) announce(ip netip.Addr) {
	for _, o := range m.s.all {
		if o != m {
			o.hear(m, ip)
		}
	}
	m.probe(plan.Announcement{IP: ip})
}

// probe asks the other nodes who has an address. A node answers without its agent, too.
func (m *machine) probe(a plan.Announcement) {
	for _, o := range m.s.all {
		if o != m && o.answersFor(a.IP) {
			m.hear(o, a.IP)
		}
	}
}

// hear has the node receive a moment later that another node has an address.
func (m *machine) hear(from *machine, ip netip.Addr) {
	mac := from.macFor(ip)
	m.s.after(m.s.within(20*time.Millisecond, fmt.Sprint(m.name, " hears ", from.name, " have ", ip)), func() {
		if !m.receives(from) {
			return
		}
		m.received[ip] = m.s.now
		if m.process.alive && (m.announced[ip] != "" || m.answersFor(ip)) {
			m.agent.Hear(holder.Claim{IP: ip, MAC: mac})
			m.process.wake()
		}
	})
}

func (m *machine) macFor(ip netip.Addr) string {
	h := compiletest.Host(m.hardware)
	if _, link := h.LinkFor(ip); link != nil {
		return link.MAC
	}
	return h.UplinkMAC
}

// answersFor reports whether the node answers ARP and NDP for an address: its kernel does for one on a link. OVN does
// for one that the gateway router translates to, unless the bridge mutes the answers. Once the lease has ended, the
// bridge does so if another node has announced the address since it was renewed.
func (m *machine) answersFor(ip netip.Addr) bool {
	if m.hasOnLink(ip) {
		return true
	}
	if !m.s.verdict.translates[m][ip].byOVN || m.mutes(ip) {
		return false
	}
	heard := m.received[ip]
	return m.s.now.Sub(m.renewed) < answerLease || heard.Before(m.renewed) || m.s.now.Sub(heard) > silencedFor
}

// mutes reports whether the bridge drops requests for an address.
func (m *machine) mutes(ip netip.Addr) bool {
	asks := [...]string{"arp,in_port={eth0},arp_tpa=", "icmp6,icmp_type=135,in_port={eth0},nd_target="}
	_, mutes := m.have.Flows.Get(plan.MuteAddress.Flow(m.s.config.Bridge, asks[world.FamilyOf(ip)]+ip.String()))
	return mutes
}

func (m *machine) hasOnLink(ip netip.Addr) bool {
	for a := range m.have.Addrs.Rows() {
		if a.Prefix.Addr() == ip {
			return true
		}
	}
	return false
}
