package simulate

import (
	"maps"
	"net/netip"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
)

// announceNew announces the addresses that a plan, which has taken effect, announces newly.
func (m *machine) announceNew(want *plan.State) {
	for a := range want.Announcements.Rows() {
		if m.answersFor[a.IP] != a.MAC {
			m.answersFor[a.IP] = a.MAC
			m.announce(a.IP)
		}
	}
}

// dropAnnounced stops answering for addresses that a plan does not announce.
func (m *machine) dropAnnounced(want *plan.State) {
	wanted := compiletest.Rows(want.Announcements)
	maps.DeleteFunc(m.answersFor, func(ip netip.Addr, mac string) bool {
		for a := range wanted {
			if a.IP == ip && a.MAC == mac {
				return false
			}
		}
		return true
	})
}

// announce tells the other nodes that this one has an address.
func (m *machine) announce(ip netip.Addr) {
	for _, o := range m.s.all {
		if o != m {
			o.hear(m, ip)
		}
	}
}

// probe asks the other nodes who has an address. A node answers without its agent, too.
func (m *machine) probe(a plan.Announcement) {
	for _, o := range m.s.all {
		if o != m {
			m.hear(o, a.IP)
		}
	}
}

// hear has the agent receive a moment later that another node has an address, if that answers for it.
func (m *machine) hear(from *machine, ip netip.Addr) {
	mac, answers := from.answersFor[ip]
	if !answers || m.process == nil {
		return
	}
	process := m.process
	m.s.after(m.s.within(20*time.Millisecond, m.name+" hears "+from.name), func() {
		if process.alive && m.answers() && from.answers() {
			m.agent.Hear(holder.Claim{IP: ip, MAC: mac})
			process.wake()
		}
	})
}
