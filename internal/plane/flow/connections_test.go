package flow

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
)

// listened is a bridge of another name that passes everything on to br0, and counts.
type listened struct{ connections, answered atomic.Int64 }

func listen(t *testing.T, s *ovstest.Switch, name string) *listened {
	l, err := net.Listen("unix", filepath.Join(s.RunDir, name+".mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	counts := &listened{}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			counts.connections.Add(1)
			go counts.passOn(from, filepath.Join(s.RunDir, "br0.mgmt"))
		}
	}()
	return counts
}

func (c *listened) passOn(from net.Conn, path string) {
	defer from.Close()
	to, err := net.Dial("unix", path)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, err := io.Copy(to, from)
		_ = errors.Join(err, to.(*net.UnixConn).CloseWrite())
	}()
	n, _ := io.Copy(from, to)
	c.answered.Add(n)
}

// TestNoNamesAreAsked: a command is one connection, and the switch is asked for no names of ports and tables, which are
// more than a megabyte.
func TestNoNamesAreAsked(t *testing.T) {
	s, p := start(t)
	counts := listen(t, s, "br1")
	flow := plan.Flow{Bridge: "br1", Priority: 100, Match: "arp"}
	st := plan.New()
	st.Flows.Put(plan.Owner{Feature: "o"}, flow, "drop")
	for _, command := range []struct {
		name string
		run  func() error
	}{
		{"read", func() error { _, err := p.bridgeFor(t.Context(), "br1"); return err }},
		{"write", func() error { return p.Grow(t.Context(), st) }},
		{"count", func() error { _, err := p.Packets(t.Context(), flow); return err }},
		{"compare", func() error { _, err := p.Compare(t.Context(), st); return err }},
	} {
		before, bytes := counts.connections.Load(), counts.answered.Load()
		if err := command.run(); err != nil {
			t.Fatalf("%s: %v", command.name, err)
		}
		connections, bytes := counts.connections.Load()-before, counts.answered.Load()-bytes
		if connections != 1 || bytes > 4<<10 {
			t.Errorf("%s: %d connections, %d bytes", command.name, connections, bytes)
		}
	}
}
