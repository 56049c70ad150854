package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

// flow is a TCP connection, or the datagrams from one port, as a host outside has it.
type flow struct {
	network string // tcp or udp
	from    netip.AddrPort
	to      netip.Addr
}

// flows counts lines and datagrams.
type flows struct {
	t   *testing.T
	mu  sync.Mutex
	all map[flow]int
}

// flowsAt takes connections and datagrams at hosts' addresses until the test ends.
func flowsAt(t *testing.T, hosts ...sandbox.Member) *flows {
	t.Helper()
	f := &flows{t: t, all: map[flow]int{}}
	for _, h := range hosts {
		for _, ip := range h.IPs {
			must(t, sandbox.InNetns(h.Name, func() error { return f.listen(ip) }))
		}
	}
	return f
}

func (f *flows) listen(ip netip.Addr) error {
	at := net.JoinHostPort(ip.String(), strconv.Itoa(keepPort))
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	f.t.Cleanup(func() { listener.Close() })
	socket, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	f.t.Cleanup(func() { socket.Close() })
	go f.datagrams(socket.(*net.UDPConn), ip)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			f.t.Cleanup(func() { c.Close() })
			go f.lines(c, ip)
		}
	}()
	return nil
}

func (f *flows) lines(c net.Conn, to netip.Addr) {
	from := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		f.count("tcp", from, to)
		_, _ = fmt.Fprintln(c, "answer")
	}
}

func (f *flows) datagrams(socket *net.UDPConn, to netip.Addr) {
	for buffer := make([]byte, 64); ; {
		_, from, err := socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		f.count("udp", from, to)
	}
}

func (f *flows) count(network string, from netip.AddrPort, to netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[flow{network, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), to}]++
}

// now is what was counted of some.
func (f *flows) now(of []flow) (counts []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range of {
		counts = append(counts, f.all[x])
	}
	return counts
}

// to waits until each of these addresses has flows of both kinds with such sources, one of each pod, and returns them.
func (f *flows) to(ips, sources []netip.Addr) (all []flow) {
	f.t.Helper()
	for _, ip := range ips {
		for _, network := range []string{"tcp", "udp"} {
			within(f.t, soon, func() error {
				some := f.of(network, ip, sources)
				if len(some) < len(trafficPods) {
					return fmt.Errorf("%s to %s from %v: %v", network, ip, sources, some)
				}
				all = append(all, some...)
				return nil
			})
		}
	}
	return all
}

func (f *flows) of(network string, to netip.Addr, sources []netip.Addr) (out []flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for x := range f.all {
		if x.network == network && x.to == to && slices.Contains(sources, x.from.Addr()) {
			out = append(out, x)
		}
	}
	return out
}

// live says that over each of these something more comes.
func (f *flows) live(which string, all []flow) {
	f.t.Helper()
	before := f.now(all)
	within(f.t, soon, func() error {
		for i, count := range f.now(all) {
			if count < before[i]+5 {
				return fmt.Errorf("%s: %v of %d flows stands still at %d", which, all[i], len(all), count)
			}
		}
		return nil
	})
}

// end waits until nothing more comes over these: for much longer than their pods are silent.
func (f *flows) end(which string, all []flow) {
	f.t.Helper()
	const silence = time.Second
	within(f.t, soon, func() error {
		before := f.now(all)
		time.Sleep(silence)
		for i, count := range f.now(all) {
			if count != before[i] {
				return fmt.Errorf("%s: %v of %d flows goes on", which, all[i], len(all))
			}
		}
		return nil
	})
}

// opens has both pods begin connections, or send datagrams from one port, to addresses, until the test ends.
func (b byDestination) opens(network string, to ...[]netip.Addr) {
	b.Helper()
	form := map[string]string{"tcp": "keep 1", "udp": "stream"}[network]
	var script strings.Builder
	for _, ip := range concat(to...) {
		fmt.Fprintf(&script, "%s %s %s >/dev/null 2>&1 </dev/null & echo $! >>/tmp/flows; ", traffic.Sender, form,
			netip.AddrPortFrom(ip, keepPort))
	}
	for _, p := range trafficPods {
		b.n.in(p, script.String())
	}
}

// closes ends what opens began.
func (b byDestination) closes() {
	for _, p := range trafficPods {
		b.n.in(p, "kill $(cat /tmp/flows); rm /tmp/flows")
	}
}
