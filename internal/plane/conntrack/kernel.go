package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

// Kernel is the conntrack of the network namespace that the calling thread is in. As Zones it knows one name: the host's own connections are
// in zone 0; the kernel's OVS datapath has others.
type Kernel struct{}

// hostZone is that of the host's own connections.
const hostZone = 0

// CTZone is hostZone for plan.HostKernel.
func (Kernel) CTZone(_ context.Context, name string) (int, bool) {
	return hostZone, name == plan.SNATZone(plan.HostKernel)
}

// The sockets that the netlink package opens for one request have a deadline of 60 s for each answer, which the kernel has ready when sendmsg(2) returns.
var families = []netlink.InetFamily{unix.AF_INET, unix.AF_INET6}

// Dump lists the entries of both families. A table that changes while it is read may miss some; the plane reads again after each flush.
func (Kernel) Dump(_ context.Context, zone int) ([]Entry, error) {
	var entries []Entry
	for _, family := range families {
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, fmt.Errorf("list the kernel's connections: %w", err)
		}
		for _, f := range flows {
			if e := fromFlow(f); e.Zone == zone {
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

// Flush reads the tables once more and ends what is in entries.
func (Kernel) Flush(_ context.Context, entries ...Entry) error {
	wanted := wanted{}
	for _, e := range entries {
		e.Mark = 0
		wanted[e] = true
	}
	for _, family := range families {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, wanted); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("end connections of the kernel: %w", err)
		}
	}
	return nil
}

// wanted is a filter of exactly its entries.
type wanted map[Entry]bool

// MatchConntrackFlow is what netlink asks of a filter.
func (w wanted) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	e := fromFlow(f)
	e.Mark = 0 // it may be another one by now
	return w[e]
}

// fromFlow leaves out ICMP's fields, which netlink does not read: its connections between two addresses are then one entry.
func fromFlow(f *netlink.ConntrackFlow) Entry {
	return Entry{Proto: f.Forward.Protocol, Orig: fromTuple(f.Forward), Reply: fromTuple(f.Reverse), Zone: int(f.Zone), Mark: f.Mark}
}

func fromTuple(t netlink.IPTuple) Tuple {
	return Tuple{Src: fromIP(t.SrcIP), Dst: fromIP(t.DstIP), SrcPort: t.SrcPort, DstPort: t.DstPort}
}

func fromIP(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
