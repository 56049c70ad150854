package conntrack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Dump lists the entries of both families. The kernel compares them with patterns first (Linux 5.8; an older one lists
// all): to copy 100,000 entries takes long, to compare them some milliseconds. A table that changes while it
// is read may miss some; the plane reads again after each flush.
func (Kernel) Dump(_ context.Context, zone int, like ...Entry) (entries []Entry, err error) {
	if len(like) == 0 {
		like = []Entry{{}}
	}
	for _, l := range like {
		for _, family := range families {
			if a := cmp.Or(l.Orig.Src, l.Orig.Dst); a.IsValid() && familyOf(a) != family {
				continue
			}
			err := listEntries(family, l, func(e Entry) {
				if e.Zone == zone && e.isLike(l) {
					entries = append(entries, e)
				}
			})
			if err != nil {
				return nil, fmt.Errorf("list the kernel's connections: %w", err)
			}
		}
	}
	return entries, nil
}

// Flush names each entry to the kernel by its original direction.
func (Kernel) Flush(_ context.Context, entries ...Entry) error {
	var errs []error
	for _, e := range entries {
		if err := e.deleteEntry(); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("end connection %+v of the kernel: %w", e, err))
		}
	}
	return errors.Join(errs...)
}

func familyOf(a netip.Addr) netlink.InetFamily {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
