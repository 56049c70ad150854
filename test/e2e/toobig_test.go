package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestTooBig: what answers an egress IP and is larger than pods' links carry. Whoever asks for the path's MTU is told;
// what of IPv4 may be cut arrives in pieces though its sender does not listen; and fragments arrive, whatever their
// size. So it is for a pod on the node of the egress IP, and for one elsewhere.
func TestTooBig(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "away", node: c.nodes[0], labels: web}, pod{name: "home", node: c.nodes[1], labels: web})
	e := c.egressIP(t, "too-big", c.number(66), n.itself(), selects(web))
	e.readyOn(c.nodes[1])
	n.each(
		part{"Deaf", func(t *testing.T, n *namespace) { n.hears(t, answerer{port: 7081, deaf: true}) }},
		part{"Listening", func(t *testing.T, n *namespace) { n.hears(t, answerer{port: 7082}) }},
		part{"Asking", func(t *testing.T, n *namespace) { n.hears(t, answerer{port: 7083, asks: true}) }},
	)
}

// Sizes of answers: a packet that fits everywhere, one that fits on the links outside, and fragments, whose last one
// is small. The pods' program reads no more of an answer than it says it does.
const (
	small, between, fragments = 1200, 1420, 3000

	dialReads = 2048
)

// hears has both pods ask for each answer.
func (n *namespace) hears(t *testing.T, a answerer) {
	host := n.c.hosts[0]
	a.mtu = n.c.podMTU()
	a.answersIn(t, host.Name)
	for _, egress := range n.c.number(66) {
		to := netip.AddrPortFrom(ofFamily(host.IPs, egress)[0], a.port)
		for _, p := range []string{"away", "home"} {
			for _, ip := range []string{"-4", "-6"} { // nothing is known of the path's MTU
				n.c.on(t, host.Name, "ip", ip, "route", "flush", "cache")
			}
			for _, size := range a.sizes(to.Addr()) {
				if err := n.hear(p, to, size, a.fitting(size, to.Addr()), egress); err != nil {
					t.Errorf("%s by %s, %d bytes: %v", p, egress, size, err)
				}
			}
		}
	}
}

// hear has a pod ask once.
func (n *namespace) hear(pod string, to netip.AddrPort, size, want int, egress netip.Addr) error {
	dial := fmt.Sprintf("/dial?host=%s&port=%d&protocol=udp&tries=1&request=%d", to.Addr(), to.Port(), size)
	out, err := n.exec(n.t.Context(), pod, "curl -sS --max-time 10 '"+url(netip.MustParseAddr("127.0.0.1"), podPort,
		dial)+"'")
	if err != nil {
		return err
	}
	var said struct{ Responses, Errors []string }
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Responses) != 1 {
		return errors.Join(err, fmt.Errorf("the pod says %q", out))
	}
	from, _, _ := strings.Cut(said.Responses[0], "#")
	source, err := netip.ParseAddrPort(from)
	if have := len(said.Responses[0]); err != nil || source.Addr() != egress || have != min(want, dialReads) {
		return fmt.Errorf("an answer of %d bytes to %s, want %d to %s", have, from, want, egress)
	}
	return nil
}

// answerer is a server outside that sends as many bytes as it is asked for, but does not say how often. One that is
// deaf takes no notice of ICMP and lets its packets be cut. Another one sends each answer again once it can have
// learned that it was too big; one that asks lets nothing be cut, and sends as much as fits then.
type answerer struct {
	port       uint16
	mtu        int // of pods
	deaf, asks bool
}

// sizes are those that are asked for. Nobody but its sender cuts a packet of IPv6.
func (a answerer) sizes(to netip.Addr) []int {
	switch {
	case a.deaf && to.Is6():
		return []int{small}
	case a.asks:
		return []int{small, between}
	}
	return []int{small, between, fragments, small}
}

// answersIn starts it, until the test ends.
func (a answerer) answersIn(t *testing.T, host string) {
	t.Helper()
	for _, f := range []string{"udp4", "udp6"} {
		var conn *net.UDPConn
		must(t, sandbox.InNetns(host, func() (err error) {
			conn, err = net.ListenUDP(f, &net.UDPAddr{Port: int(a.port)})
			return err
		}))
		t.Cleanup(func() { conn.Close() })
		must(t, a.discovers(conn, f == "udp6"))
		go a.serve(conn)
	}
}

// discovers sets what the kernel does about the path's MTU (ip(7)).
func (a answerer) discovers(conn *net.UDPConn, v6 bool) error {
	mode := unix.IP_PMTUDISC_WANT
	switch {
	case a.deaf:
		mode = unix.IP_PMTUDISC_OMIT
	case a.asks:
		mode = unix.IP_PMTUDISC_DO
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER
	if v6 {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), level, option, mode) })
	return errors.Join(err, failed)
}

// fitting is the size that arrives of an answer.
func (a answerer) fitting(size int, to netip.Addr) int {
	headers := 20 + 8
	if to.Is6() {
		headers = 40 + 8
	}
	if a.asks {
		return min(size, a.mtu-headers)
	}
	return size
}

func (a answerer) serve(conn *net.UDPConn) {
	for text := make([]byte, 256); ; {
		n, from, err := conn.ReadFromUDPAddrPort(text)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		size, _ := strconv.Atoi(string(text[:n]))
		begin := netip.AddrPortFrom(from.Addr().Unmap(), from.Port()).String() + "#"
		answer := []byte(begin + strings.Repeat(".", max(0, size-len(begin))))
		_, _ = conn.WriteToUDPAddrPort(answer, from)
		if a.deaf || size == small {
			continue
		}
		time.Sleep(300 * time.Millisecond) // the way of an error
		if _, err = conn.WriteToUDPAddrPort(answer, from); errors.Is(err, syscall.EMSGSIZE) {
			_, _ = conn.WriteToUDPAddrPort(answer[:a.fitting(size, from.Addr().Unmap())], from)
		}
	}
}
