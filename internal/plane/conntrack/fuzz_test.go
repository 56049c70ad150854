package conntrack

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// tupleSyntax is all that a flush command may hold: what else were in it could end its argument, or begin another.
var tupleSyntax = regexp.MustCompile(`^[a-z0-9_=.:,]+$`)

// FuzzEntry: a line is refused or read; what was read can be written as OVS writes it and read again without a change,
// and names one connection to dpctl/flush-conntrack and nothing else.
func FuzzEntry(f *testing.F) {
	for _, line := range []string{
		"tcp,orig=(src=10.0.0.1,dst=8.8.8.8,sport=1234,dport=80),reply=(src=8.8.8.8,dst=172.18.0.50,sport=80,dport=1234),zone=5,mark=7,labels=0x3,protoinfo=(state=SYN_SENT)",
		"icmp,orig=(src=10.0.0.1,dst=8.8.8.8,id=3,type=8,code=0),reply=(src=8.8.8.8,dst=172.18.0.50,id=3,type=0,code=0),zone=5",
		"icmpv6,orig=(src=fd00::1,dst=2001:db8::1,id=0,type=128,code=0),reply=(src=2001:db8::1,dst=fd00::50,id=0,type=129,code=0),zone=5",
		"47,orig=(src=10.0.0.1,dst=8.8.8.8,sport=0,dport=0),reply=(src=8.8.8.8,dst=10.0.0.1,sport=0,dport=0),mark=1",
		"udp,orig=(src=fe80::1%eth0 ,dst=fd00::1,sport=5,dport=6),reply=(src=fd00::1,dst=fe80::1%eth0 " +
			",sport=6,dport=5),zone=5",
		"udp,orig=(src=10.0.0.1,dst=fd00::1,sport=5,dport=6),reply=(src=fd00::1,dst=10.0.0.1,sport=6,dport=5),zone=-5",
		"udp,orig=(src=10.0.0.1,dst=10.0.0.2),reply=(dst=10.0.0.1),zone=70000",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := parseEntry(line)
		if err != nil {
			return
		}
		if again, err := parseEntry(printed(e)); err != nil || again != e {
			t.Errorf("%q\nwas read as  %+v\nwritten as   %s\nand read as  %+v, %v", line, e, printed(e), again, err)
		}
		if tuple := e.flushTuple(); !tupleSyntax.MatchString(tuple) {
			t.Errorf("%q is flushed by %q", line, tuple)
		}
		family := e.Orig.Src.Is4()
		if e.Zone < 0 || e.Zone > 65535 || e.Orig.Dst.Is4() != family || e.Reply.Src.Is4() != family ||
			e.Reply.Dst.Is4() != family {
			t.Errorf("%q was read as %+v: zones have 16 bits, and a connection has one family", line, e)
		}
	})
}

// printed is an entry as lib/ct-dpif.c writes it.
func printed(e Entry) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d,orig=%s,reply=%s", e.Proto, printedTuple(e.Orig), printedTuple(e.Reply))
	if e.Zone != 0 {
		fmt.Fprintf(&s, ",zone=%d", e.Zone)
	}
	return s.String()
}

func printedTuple(t Tuple) string {
	return fmt.Sprintf("(src=%s,dst=%s,sport=%d,dport=%d,id=%d,type=%d,code=%d)", t.Src, t.Dst, t.SrcPort, t.DstPort,
		t.ICMPID, t.ICMPType, t.ICMPCode)
}
