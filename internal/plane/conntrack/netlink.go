package conntrack

import (
	"encoding/binary"
	"errors"
	"iter"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Constants of linux/netfilter/nfnetlink_conntrack.h for which package nl has no name.
const (
	ctaFilter          = 25
	ctaFilterOrigFlags = 1
	ctaProtoICMPID     = 4 // then type and code; three more are ICMPv6's
	ctaProtoICMPv6ID   = 7

	filterSrc     = 1 << 0
	filterDst     = 1 << 1
	filterProto   = 1 << 3
	filterDstPort = 1 << 5
)

// listEntries calls each with the kernel's entries of a family that are like a pattern. The netlink package has no way
// to ask for some, and none to tell the ports of SCTP and the fields of ICMP.
func listEntries(family netlink.InetFamily, like Entry, each func(Entry)) error {
	request := newRequest(nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP, family)
	if flags := like.filterFlags(); flags != 0 {
		request.AddData(like.origAttr())
		filter := nl.NewRtAttr(unix.NLA_F_NESTED|ctaFilter, nil)
		filter.AddRtAttr(ctaFilterOrigFlags, nl.Uint32Attr(flags))
		request.AddData(filter)
	}
	err := request.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(m []byte) bool {
		if e := parseMessage(m); e.ofOneFamily() {
			each(e)
		}
		return true
	})
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil
	}
	return err
}

// deleteEntry ends one of the kernel's connections.
func (e Entry) deleteEntry() error {
	request := newRequest(nl.IPCTNL_MSG_CT_DELETE, unix.NLM_F_ACK, familyOf(e.Orig.Src))
	request.AddData(e.origAttr())
	request.AddData(nl.NewRtAttr(nl.CTA_ZONE, nl.BEUint16Attr(uint16(e.Zone))))
	_, err := request.Execute(unix.NETLINK_NETFILTER, 0)
	return err
}

func newRequest(kind, flags int, family netlink.InetFamily) *nl.NetlinkRequest {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|kind, flags)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: uint8(family), Version: nl.NFNETLINK_V0})
	return request
}

// filterFlags returns the fields of a pattern that the kernel must compare. IPv6 addresses are not among them: Linux
// 6.18 lists the entries that have another one. Ports it compares with TCP and UDP alone.
func (e Entry) filterFlags() (flags uint32) {
	if e.Orig.Src.Is4() {
		flags |= filterSrc
	}
	if e.Orig.Dst.Is4() {
		flags |= filterDst
	}
	if e.Proto != 0 {
		flags |= filterProto
	}
	if e.Orig.DstPort != 0 {
		flags |= filterDstPort
	}
	return flags
}

// origAttr returns the original direction as the kernel takes it, without addresses that are not valid.
func (e Entry) origAttr() *nl.RtAttr {
	out := nl.NewRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_ORIG, nil)
	ip := out.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_IP, nil)
	for i, a := range []netip.Addr{e.Orig.Src, e.Orig.Dst} {
		switch {
		case a.Is4():
			ip.AddRtAttr(nl.CTA_IP_V4_SRC+i, a.AsSlice())
		case a.Is6():
			ip.AddRtAttr(nl.CTA_IP_V6_SRC+i, a.AsSlice())
		}
	}
	proto := out.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
	proto.AddRtAttr(nl.CTA_PROTO_NUM, []byte{e.Proto})
	icmp := map[uint8]int{protoICMP: ctaProtoICMPID, protoICMPv6: ctaProtoICMPv6ID}[e.Proto]
	if icmp == 0 {
		proto.AddRtAttr(nl.CTA_PROTO_SRC_PORT, nl.BEUint16Attr(e.Orig.SrcPort))
		proto.AddRtAttr(nl.CTA_PROTO_DST_PORT, nl.BEUint16Attr(e.Orig.DstPort))
		return out
	}
	proto.AddRtAttr(icmp, nl.BEUint16Attr(e.Orig.ICMPID))
	proto.AddRtAttr(icmp+1, []byte{e.Orig.ICMPType})
	proto.AddRtAttr(icmp+2, []byte{e.Orig.ICMPCode})
	return out
}

// parseMessage reads one connection. Fields that it cannot read are zero.
func parseMessage(m []byte) (e Entry) {
	for t, value := range parseAttributes(m[min(nl.SizeofNfgenmsg, len(m)):]) {
		switch {
		case t == nl.CTA_TUPLE_ORIG:
			e.Proto, e.Orig = tupleOf(value)
		case t == nl.CTA_TUPLE_REPLY:
			_, e.Reply = tupleOf(value)
		case t == nl.CTA_ZONE && len(value) >= 2:
			e.Zone = int(binary.BigEndian.Uint16(value))
		case t == nl.CTA_MARK && len(value) >= 4:
			e.Mark = binary.BigEndian.Uint32(value)
		}
	}
	return e
}

// parseAttributes are netlink attributes by type, up to the first that cannot be read.
func parseAttributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			n := int(binary.NativeEndian.Uint16(b))
			if n < unix.SizeofNlAttr || n > len(b) ||
				!yield(binary.NativeEndian.Uint16(b[2:])&nl.NLA_TYPE_MASK, b[unix.SizeofNlAttr:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// tupleOf reads one direction of a connection.
func tupleOf(b []byte) (proto uint8, t Tuple) {
	for part, value := range parseAttributes(b) {
		for kind, field := range parseAttributes(value) {
			switch {
			case part == nl.CTA_TUPLE_IP && (kind == nl.CTA_IP_V4_SRC || kind == nl.CTA_IP_V6_SRC):
				t.Src, _ = netip.AddrFromSlice(field)
			case part == nl.CTA_TUPLE_IP && (kind == nl.CTA_IP_V4_DST || kind == nl.CTA_IP_V6_DST):
				t.Dst, _ = netip.AddrFromSlice(field)
			case part == nl.CTA_TUPLE_PROTO && kind == nl.CTA_PROTO_NUM && len(field) >= 1:
				proto = field[0]
			case part == nl.CTA_TUPLE_PROTO:
				t.setField(kind, field)
			}
		}
	}
	return proto, t
}

// setField sets what a direction has beside addresses.
func (t *Tuple) setField(kind uint16, field []byte) {
	number := func(size int) (n uint16) {
		for _, b := range field[:min(size, len(field))] {
			n = n<<8 | uint16(b)
		}
		return n
	}
	switch kind {
	case nl.CTA_PROTO_SRC_PORT:
		t.SrcPort = number(2)
	case nl.CTA_PROTO_DST_PORT:
		t.DstPort = number(2)
	case ctaProtoICMPID, ctaProtoICMPv6ID:
		t.ICMPID = number(2)
	case ctaProtoICMPID + 1, ctaProtoICMPv6ID + 1:
		t.ICMPType = uint8(number(1))
	case ctaProtoICMPID + 2, ctaProtoICMPv6ID + 2:
		t.ICMPCode = uint8(number(1))
	}
}
