package route

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// lookAtGateways is how often the kernel's entries of gateways are read. Every second time it is told to ask.
	lookAtGateways = 2 * time.Second
	// asked is what the kernel knows about a gateway that it need not ask again by itself.
	asked = netlink.NUD_REACHABLE | netlink.NUD_STALE
	// lost is what the kernel knows about a gateway that did not answer.
	lost = netlink.NUD_FAILED | netlink.NUD_NONE
)

// AskGateways has the kernel ask the gateways behind a device, until ctx ends, whether they still have the hardware
// address that it knows. Packets of pods do not pass the kernel, which does not ask on their account. OVN does not ask
// for what it has learned. Both hear the answers, which the bridge copies.
//
// The kernel sends a unicast request three times in three seconds, and then one to all. A gateway that was exchanged
// without an announcement is found within 10 s.
func AskGateways(ctx context.Context, dev string, gateways func() []netip.Addr, log *slog.Logger) {
	tick := time.NewTicker(lookAtGateways)
	defer tick.Stop()
	failed := false
	for ask := true; ; ask = !ask {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := askGateways(dev, gateways(), ask)
		if err != nil && !failed {
			log.Warn("gateways could not be asked for their hardware addresses; trying again", "error", err)
		}
		failed = err != nil
	}
}

// askGateways asks those that were lost, and if ask is set also those that are known.
func askGateways(dev string, gateways []netip.Addr, ask bool) error {
	if len(gateways) == 0 {
		return nil
	}
	link, err := net.InterfaceByName(dev)
	if err != nil {
		return fmt.Errorf("find %s: %w", dev, err)
	}
	entries, err := netlink.NeighList(link.Index, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the neighbours on %s: %w", dev, err)
	}
	for _, g := range gateways {
		i := slices.IndexFunc(entries, func(n netlink.Neigh) bool { return n.IP.Equal(g.AsSlice()) })
		switch {
		case i < 0 || entries[i].State == netlink.NUD_NONE || entries[i].State&lost != 0:
			err = setNeighbour(link.Index, g, netlink.NUD_NONE, netlink.NTF_USE)
		case ask && entries[i].State&asked != 0:
			err = setNeighbour(link.Index, g, netlink.NUD_PROBE, 0)
		}
		if err != nil {
			return fmt.Errorf("ask for gateway %s on %s: %w", g, dev, err)
		}
	}
	return nil
}

// setNeighbour has the kernel ask for an address: with state NUD_PROBE the hardware address that it knows, whichever
// that is by now, with NTF_USE as if a packet were sent. Package netlink always writes a hardware address.
func setNeighbour(link int, ip netip.Addr, state uint16, flags uint8) error {
	family := uint8(unix.AF_INET)
	if ip.Is6() {
		family = unix.AF_INET6
	}
	r := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	r.AddData(&netlink.Ndmsg{Family: family, Index: uint32(link), State: state, Flags: flags})
	r.AddData(nl.NewRtAttr(netlink.NDA_DST, ip.AsSlice()))
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
