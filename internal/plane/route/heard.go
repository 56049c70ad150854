package route

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

// heard says whether somebody else changed the kernel's links, addresses, routes or rules. The kernel's message about a
// change is in the socket's queue before whoever asked for the change has its answer.
type heard struct {
	socket *nl.NetlinkSocket
	buffer [1 << 16]byte
	// deleting is the route that we are deleting, until the message of it has come; else it is zero. Our additions need
	// no such note: nobody else adds what carries our protocol.
	deleting plan.RouteKey
}

// heardQueue, in bytes, takes the messages about hundreds of changes; where it is full, the kernel says so, once.
const heardQueue = 1 << 18

// openHeard listens from here on in the network namespace of the calling thread.
func openHeard() (*heard, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE)
	if err != nil {
		return nil, fmt.Errorf("subscribe to the kernel's network changes: %w", err)
	}
	if err := s.SetReceiveBufferSize(heardQueue, true); err != nil {
		s.Close()
		return nil, fmt.Errorf("make room for the kernel's network changes: %w", err)
	}
	return &heard{socket: s}, nil
}

// drainOthers takes in what there is, and says whether any of it is not of our own routes. A message that cannot be
// read may be one.
func (h *heard) drainOthers() bool {
	found := false
	for {
		n, _, err := unix.Recvfrom(h.socket.GetFd(), h.buffer[:], unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return found
		case errors.Is(err, unix.ENOBUFS): // messages were lost
			found = true
		case err != nil:
			return true
		default:
			found = h.receiveMessages(h.buffer[:n]) || found
		}
	}
}

// deleteRoute deletes a route of ours, and says whether somebody else changed something before or meanwhile.
func (h *heard) deleteRoute(k plan.RouteKey, do func() error) (others bool, err error) {
	before := h.drainOthers()
	h.deleting = k
	err = do()
	meanwhile := h.drainOthers()
	h.deleting = plan.RouteKey{}
	return before || meanwhile, err
}

func (h *heard) receiveMessages(datagram []byte) (others bool) {
	messages, err := syscall.ParseNetlinkMessage(datagram)
	for _, m := range messages {
		others = !addsOurs(m) && !h.isOurDeletion(m) || others
	}
	return others || err != nil
}

// isOurDeletion says whether a message is of a route that we deleted.
func (h *heard) isOurDeletion(m syscall.NetlinkMessage) bool {
	if m.Header.Type != unix.RTM_DELROUTE || !isOurs(m) {
		return false
	}
	k, ok := routeOf(m.Data)
	if !ok || h.deleting != k {
		return false
	}
	h.deleting = plan.RouteKey{}
	return true
}

// addsOurs says whether a message is of a route or rule of ours that was added or changed: by this process.
func addsOurs(m syscall.NetlinkMessage) bool {
	return (m.Header.Type == unix.RTM_NEWROUTE || m.Header.Type == unix.RTM_NEWRULE) && isOurs(m)
}

// takesOurs says whether one is of a route or rule of ours that was deleted, by whomever, or of a route that the kernel
// made of an address, which may be one of ours.
func takesOurs(m syscall.NetlinkMessage) bool {
	switch m.Header.Type {
	case unix.RTM_DELRULE:
		return isOurs(m)
	case unix.RTM_DELROUTE:
		return isOurs(m) || len(m.Data) >= unix.SizeofRtMsg &&
			nl.DeserializeRtMsg(m.Data).Protocol == unix.RTPROT_KERNEL
	}
	return false
}

// isOurs is about messages of routes and rules. A rule's protocol is an attribute (Linux 4.17 and later).
func isOurs(m syscall.NetlinkMessage) bool {
	if len(m.Data) < unix.SizeofRtMsg {
		return false
	}
	if m.Header.Type == unix.RTM_NEWROUTE || m.Header.Type == unix.RTM_DELROUTE {
		return nl.DeserializeRtMsg(m.Data).Protocol == Protocol
	}
	attrs, err := nl.ParseRouteAttrAsMap(m.Data[unix.SizeofRtMsg:])
	protocol := attrs[nl.FRA_PROTOCOL].Value
	return err == nil && len(protocol) == 1 && protocol[0] == Protocol
}

// routeOf is the route that a message is about.
func routeOf(data []byte) (plan.RouteKey, bool) {
	head := nl.DeserializeRtMsg(data)
	attrs, err := nl.ParseRouteAttrAsMap(data[unix.SizeofRtMsg:])
	if err != nil {
		return plan.RouteKey{}, false
	}
	k := plan.RouteKey{Table: int(head.Table), Dst: defaultPrefix(int(head.Family))}
	if table := attrs[unix.RTA_TABLE].Value; len(table) >= 4 {
		k.Table = int(nl.NativeEndian().Uint32(table))
	}
	if dst := attrs[unix.RTA_DST].Value; len(dst) > 0 {
		k.Dst = netip.PrefixFrom(fromIP(dst), int(head.Dst_len))
	}
	return k, true
}
