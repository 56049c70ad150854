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

// Kernel is the conntrack of the network namespace that the calling thread is in. As Zones it knows one name: the
// host's own connections are in zone 0; the kernel's OVS datapath has others.
type Kernel struct{}

// hostZone is that of the host's own connections.
const hostZone = 0

// CTZone is hostZone for plan.HostKernel.
func (Kernel) CTZone(_ context.Context, name string) (int, bool) {
	return hostZone, name == plan.SNATZone(plan.HostKernel)
}

// The sockets that the netlink package opens for one request have a deadline of 60 s for each answer, which the kernel
// has ready when sendmsg(2) returns.
var families = []netlink.InetFamily{unix.AF_INET, unix.AF_INET6}

// Dump lists the entries of both families, those of ICMP last: Flush takes longer for them. A table that changes while
// it is read may miss some; the plane reads again after each flush.
func (Kernel) Dump(_ context.Context, zone int) ([]Entry, error) {
	var entries, icmp []Entry
	for _, family := range families {
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, fmt.Errorf("list the kernel's connections: %w", err)
		}
		for _, f := range flows {
			switch e := fromFlow(f); {
			case e.Zone != zone:
			case e.isICMP():
				icmp = append(icmp, e)
			default:
				entries = append(entries, e)
			}
		}
	}
	return append(entries, icmp...), nil
}

// Flush names each entry to the kernel by its original direction. It looks in the tables for what the kernel does not
// take so: entries of ICMP, for Dump does not tell all of their fields.
func (Kernel) Flush(_ context.Context, entries ...Entry) error {
	refused := map[netlink.InetFamily]wanted{unix.AF_INET: {}, unix.AF_INET6: {}}
	for _, e := range entries {
		err := netlink.ConntrackDelete(netlink.ConntrackTable, e.family(), e.toFlow())
		if err != nil && !errors.Is(err, unix.ENOENT) {
			e.Mark = 0
			refused[e.family()][e] = true
		}
	}
	for _, family := range families {
		if len(refused[family]) == 0 {
			continue
		}
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, refused[family]); err != nil &&
			!errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("end connections of the kernel: %w", err)
		}
	}
	return nil
}

func (e Entry) isICMP() bool { return e.Proto == protoICMP || e.Proto == protoICMPv6 }

func (e Entry) family() netlink.InetFamily {
	if e.Orig.Src.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// toFlow is what names an entry to the kernel.
func (e Entry) toFlow() *netlink.ConntrackFlow {
	tuple := func(t Tuple) netlink.IPTuple {
		return netlink.IPTuple{SrcIP: t.Src.AsSlice(), DstIP: t.Dst.AsSlice(), SrcPort: t.SrcPort, DstPort: t.DstPort,
			Protocol: e.Proto}
	}
	return &netlink.ConntrackFlow{FamilyType: uint8(e.family()), Zone: uint16(e.Zone), Forward: tuple(e.Orig),
		Reverse: tuple(e.Reply)}
}

// wanted is a filter of exactly its entries.
type wanted map[Entry]bool

// MatchConntrackFlow is what netlink asks of a filter.
func (w wanted) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	e := fromFlow(f)
	e.Mark = 0 // it may be another one by now
	return w[e]
}

// fromFlow leaves out ICMP's fields, which netlink does not read: its connections between two addresses are then one
// entry.
func fromFlow(f *netlink.ConntrackFlow) Entry {
	return Entry{Proto: f.Forward.Protocol, Orig: fromTuple(f.Forward), Reply: fromTuple(f.Reverse), Zone: int(f.Zone),
		Mark: f.Mark}
}

func fromTuple(t netlink.IPTuple) Tuple {
	return Tuple{Src: fromIP(t.SrcIP), Dst: fromIP(t.DstIP), SrcPort: t.SrcPort, DstPort: t.DstPort}
}

func fromIP(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
