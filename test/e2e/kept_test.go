package e2e

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
)

// kept are TCP connections of a pod, as the host outside has them.
type kept struct {
	t   *testing.T
	mu  sync.Mutex
	all map[string]line // by the client's address and port
}

// line is the last that came over a connection.
type line struct {
	source netip.Addr
	number int
}

// keptBy takes connections on a host until the test ends.
func keptBy(t *testing.T, host sandbox.Member) *kept {
	t.Helper()
	k := &kept{t: t, all: map[string]line{}}
	var listener net.Listener
	err := sandbox.InNetns(host.Name, func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(keepPort)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go k.read(c)
		}
	}()
	return k
}

func (k *kept) read(c net.Conn) {
	from := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		k.mu.Lock()
		k.all[from.String()] = line{from.Addr().Unmap(), k.all[from.String()].number + 1}
		k.mu.Unlock()
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
	before := k.now()
	within(k.t, soon, func() error {
		now := k.now()
		for _, c := range connections {
			if now[c].number < before[c].number+5 {
				return fmt.Errorf("%s: connection %s of %d stands still at line %d", what, c, len(connections),
					now[c].number)
			}
		}
		return nil
	})
}
