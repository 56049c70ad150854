package conntrack

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Entry is one tracked connection, as `ovs-appctl dpctl/dump-conntrack` prints it; the userspace and the kernel
// datapath print the same (lib/ct-dpif.c).
type Entry struct {
	Proto uint8 // IP protocol number
	Orig  Tuple
	Reply Tuple
	Zone  int
	Mark  uint32 // of the kernel's; 0 for those of a switch
	// Between is the original direction between two routers that translate one after the other. Reply is then the
	// second one's. No target has such entries: see dumpConnections.
	Between Tuple
}

// Tuple is one direction. Ports are 0 for ICMP, ICMP's fields are 0 for everything else.
type Tuple struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	ICMPID           uint16
	ICMPType         uint8
	ICMPCode         uint8
}

var protocols = map[string]uint8{"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "dccp": 33, "icmpv6": 58, "sctp": 132,
	"udplite": 136}

const protoICMP, protoUDP, protoICMPv6, protoSCTP = 1, 17, 58, 132

// Source is the address that the connection's far end sees.
func (e Entry) Source() netip.Addr { return e.Reply.Dst }

// Translated says whether the source was changed.
func (e Entry) Translated() bool { return e.Reply.Dst != e.Orig.Src }

// isLike reports whether an entry matches a pattern.
func (e Entry) isLike(pattern Entry) bool {
	o, like := e.Orig, pattern.Orig
	return (pattern.Proto == 0 || e.Proto == pattern.Proto) && (!like.Src.IsValid() || o.Src == like.Src) &&
		(!like.Dst.IsValid() || o.Dst == like.Dst) && (like.DstPort == 0 || o.DstPort == like.DstPort)
}

// parseEntry reads one line of a dump. Fields it does not know (mark, labels, timeout, helper, protoinfo) are left out.
func parseEntry(line string) (Entry, error) {
	var e Entry
	proto, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
	var ok bool
	if e.Proto, ok = protocols[proto]; !ok {
		n, err := strconv.ParseUint(proto, 10, 8)
		if err != nil {
			return e, fmt.Errorf("conntrack entry %q: protocol %q", line, proto)
		}
		e.Proto = uint8(n)
	}
	for _, field := range splitFields(rest) {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "orig":
			e.Orig, err = parseTuple(value)
		case "reply":
			e.Reply, err = parseTuple(value)
		case "zone":
			var zone uint16
			err = parseNumber(value, &zone)
			e.Zone = int(zone)
		}
		if err != nil {
			return e, fmt.Errorf("conntrack entry %q: %w", line, err)
		}
	}
	if !e.ofOneFamily() {
		return e, fmt.Errorf("conntrack entry %q: want four addresses of one family, without zones", line)
	}
	return e, nil
}

// ofOneFamily also keeps out addresses with a zone: its text is free, and would stand in a flush command.
func (e Entry) ofOneFamily() bool {
	for _, a := range []netip.Addr{e.Orig.Src, e.Orig.Dst, e.Reply.Src, e.Reply.Dst} {
		if !a.IsValid() || a.Zone() != "" || a.Is4() != e.Orig.Src.Is4() {
			return false
		}
	}
	return true
}

// splitFields splits at commas outside of parentheses.
func splitFields(s string) []string {
	var fields []string
	depth, start := 0, 0
	for i, c := range s {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			fields = append(fields, s[start:i])
			start = i + 1
		}
	}
	return append(fields, s[start:])
}

func parseTuple(s string) (Tuple, error) {
	var t Tuple
	for _, field := range strings.Split(strings.Trim(s, "()"), ",") {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "src":
			t.Src, err = netip.ParseAddr(value)
		case "dst":
			t.Dst, err = netip.ParseAddr(value)
		case "sport":
			err = parseNumber(value, &t.SrcPort)
		case "dport":
			err = parseNumber(value, &t.DstPort)
		case "id":
			err = parseNumber(value, &t.ICMPID)
		case "type":
			err = parseNumber(value, &t.ICMPType)
		case "code":
			err = parseNumber(value, &t.ICMPCode)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

func parseNumber[N uint8 | uint16](s string, to *N) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err == nil && uint64(N(n)) != n {
		err = fmt.Errorf("%s is too large", s)
	}
	*to = N(n)
	return err
}

// flushTuple is the original direction in the form that `dpctl/flush-conntrack` takes.
func (e Entry) flushTuple() string {
	family := "nw"
	if e.Orig.Src.Is6() {
		family = "ipv6"
	}
	s := fmt.Sprintf("ct_%s_src=%s,ct_%s_dst=%s,ct_nw_proto=%d", family, e.Orig.Src, family, e.Orig.Dst, e.Proto)
	switch {
	case e.Proto == protoICMP || e.Proto == protoICMPv6:
		return s + fmt.Sprintf(",icmp_type=%d,icmp_code=%d,icmp_id=%d", e.Orig.ICMPType, e.Orig.ICMPCode, e.Orig.ICMPID)
	case e.Orig.SrcPort != 0 || e.Orig.DstPort != 0:
		return s + fmt.Sprintf(",ct_tp_src=%d,ct_tp_dst=%d", e.Orig.SrcPort, e.Orig.DstPort)
	}
	return s
}
