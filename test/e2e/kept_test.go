package e2e

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// keeps are connections that a pod keeps: count of them, as the sender's form keep has them.
type keeps struct {
	count int
	to    netip.Addr
	kind  string // client, server or udp; "" is client
	first int    // source ports from this one on; 0 is the kernel's choice
}

func (k keeps) form() string {
	if k.kind == "" {
		return ""
	}
	return fmt.Sprintf("%s %d", k.kind, k.first)
}

// kept are connections of pods, as the host outside has them.
type kept struct {
	t   *testing.T
	mu  sync.Mutex
	all map[string]line // by protocol, the client's address and port, and the host
}

// line is the last that came over a connection.
type line struct {
	source netip.Addr
	kind   string
	number int
	at     time.Time
	gap    time.Duration // the longest until a line
	ended  error
}

// keptBy takes and answers connections and datagrams on hosts until the test ends.
func keptBy(t *testing.T, hosts ...sandbox.Member) *kept {
	t.Helper()
	k := &kept{t: t, all: map[string]line{}}
	for _, h := range hosts {
		must(t, sandbox.InNetns(h.Name, func() error { return k.listen(h.Name) }))
	}
	return k
}

func (k *kept) listen(host string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(keepPort)))
	if err != nil {
		return err
	}
	k.t.Cleanup(func() { listener.Close() })
	socket, err := net.ListenUDP("udp", &net.UDPAddr{Port: keepPort})
	if err != nil {
		return err
	}
	k.t.Cleanup(func() { socket.Close() })
	go k.datagrams(socket, host)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			k.t.Cleanup(func() { reset(c.(*net.TCPConn)) })
			go k.read(c, host)
		}
	}()
	return nil
}

// reset ends a connection without a FIN, which nobody would answer once its pod is gone: the host would keep the
// connection for minutes, and refuse another of the same address and port.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// read answers each line, and after a pause where the server is to speak: what is sent then has not been asked for.
func (k *kept) read(c net.Conn, host string) {
	from, lines := c.RemoteAddr().(*net.TCPAddr).AddrPort(), bufio.NewScanner(c)
	connection := fmt.Sprint("tcp ", from, " to ", host)
	for lines.Scan() {
		k.note(connection, from, lines.Text())
		if lines.Text() == "server" {
			time.Sleep(serverPause)
		}
		_, _ = fmt.Fprintln(c, "answer")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.all[connection]
	l.ended = fmt.Errorf("it has ended: %v", lines.Err())
	k.all[connection] = l
}

const serverPause = 500 * time.Millisecond

func (k *kept) datagrams(socket *net.UDPConn, host string) {
	for buffer := make([]byte, 64); ; {
		n, from, err := socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		k.note(fmt.Sprint("udp ", from, " to ", host), from, strings.TrimSpace(string(buffer[:n])))
		_, _ = socket.WriteToUDPAddrPort([]byte("answer"), from)
	}
}

// note counts a line of TCP. A datagram says how many answers its sender has had.
func (k *kept) note(connection string, from netip.AddrPort, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, now := k.all[connection], time.Now()
	kind, number, is := strings.Cut(text, " ")
	before := l.number
	if l.number++; is {
		l.number, _ = strconv.Atoi(number)
	}
	if l.number > before {
		if before > 0 {
			l.gap = max(l.gap, now.Sub(l.at))
		}
		l.at = now
	}
	l.source, l.kind = from.Addr().Unmap(), kind
	k.all[connection] = l
}

// forgets the gaps so far.
func (k *kept) forgets() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c, l := range k.all {
		l.gap = 0
		k.all[c] = l
	}
}

func (k *kept) now() map[string]line {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.all)
}

// from waits until there are so many connections of a family, some with each of these sources, and returns those with
// the first.
func (k *kept) from(count int, sources ...netip.Addr) []string {
	k.t.Helper()
	var first []string
	within(k.t, soon, func() error {
		first = nil
		by, all := map[netip.Addr]int{}, 0
		for c, l := range k.now() {
			if l.source.Is4() != sources[0].Is4() {
				continue
			}
			all++
			if by[l.source]++; l.source == sources[0] {
				first = append(first, c)
			}
		}
		for _, s := range sources {
			if by[s] == 0 || all < count {
				return fmt.Errorf("connections by source: %v; want %d, some with each of %v", by, count, sources)
			}
		}
		return nil
	})
	return first
}

// live says that over each of these connections something more comes.
func (k *kept) live(what string, connections []string) {
	k.t.Helper()
	k.liveWithin(soon, what, connections)
}

func (k *kept) liveWithin(limit time.Duration, what string, connections []string) {
	k.t.Helper()
	before := k.now()
	within(k.t, limit, func() error {
		now := k.now()
		for _, c := range connections {
			if now[c].number < before[c].number+5 {
				return fmt.Errorf("%s: connection %s of %d stands still at line %d: %v", what, c, len(connections),
					now[c].number, now[c].ended)
			}
		}
		return nil
	})
}

// longest are the longest gaps since they were forgotten, by kind.
func (k *kept) longest() map[string]time.Duration {
	gaps := map[string]time.Duration{}
	for _, l := range k.now() {
		gaps[l.kind] = max(gaps[l.kind], l.gap)
	}
	return gaps
}
