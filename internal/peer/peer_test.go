package peer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/peer"
	"github.com/egret-net/egret/internal/peer/peertest"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// ask is peer.Ask, and the fake's.
type ask func(ctx context.Context, node string, from netip.Addr, to netip.AddrPort,
	versions map[string]string) (map[string]string, error)

// real serves until the test ends, unless the agent is dead, or hung.
func real(t *testing.T, s peertest.State, server peer.Server) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	switch s {
	case peertest.Dead:
		l.Close()
	case peertest.Alive:
		server.Log = slog.New(slog.DiscardHandler)
		go func() { _ = server.Serve(t.Context(), l) }()
	}
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// TestConforms: server and client answer as the fake does.
func TestConforms(t *testing.T) {
	all := map[string]string{"pods": "10", "egressips": "7"}
	for _, c := range []struct {
		what  string
		node  string // that is asked
		state peertest.State
		has   map[string]string
		want  bool
	}{
		{"has followed", "n1", peertest.Alive, map[string]string{"pods": "10", "egressips": "8"}, true},
		{"is not named, as by an older agent", "", peertest.Alive, all, true},
		{"has another node's address", "n2", peertest.Alive, all, false},
		{"is behind in one kind", "n1", peertest.Alive, map[string]string{"pods": "9", "egressips": "8"}, false},
		{"knows nothing of a kind", "n1", peertest.Alive, map[string]string{"pods": "10"}, false},
		{"is dead", "n1", peertest.Dead, all, false},
		{"is hung", "n1", peertest.Hung, all, false},
	} {
		agent := &peertest.Agent{Node: "n1"}
		agent.Set(c.state, c.has)
		anybody := func(netip.Addr) bool { return true }
		to := real(t, c.state, peer.Server{Node: "n1", Asks: anybody, Followed: agent.Followed})
		for name, ask := range map[string]ask{"real": peer.Ask, "fake": peertest.Agents{to: agent}.Ask} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if c.state == peertest.Hung {
				ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
			}
			newest, err := ask(ctx, c.node, loopback, to, all)
			if (err == nil) != c.want || c.want && !maps.Equal(newest, c.has) {
				t.Errorf("%s, %s: newest %v, %v", name, c.what, newest, err)
			}
			cancel()
		}
	}
}

// TestAsksOnly: agents alone are answered, and no more than a question.
func TestAsksOnly(t *testing.T) {
	asked := make(chan netip.Addr, 10)
	to := real(t, peertest.Alive, peer.Server{
		Node:     "n1",
		Asks:     func(a netip.Addr) bool { asked <- a; return a != loopback },
		Followed: func(context.Context, map[string]string) (map[string]string, error) { return nil, nil },
	})
	_, err := peer.Ask(t.Context(), "n1", loopback, to, nil)
	if from := <-asked; err == nil || from != loopback {
		t.Errorf("asked from %v: %v", from, err)
	}
	// An answer takes a connection, of which there are so many. A kubelet has its agent's address and no reserved port.
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		if text := request(t, from, to); len(text) > 0 {
			t.Errorf("answers a stranger at %s: %q", from, text)
		}
	}
	if _, err := peer.Ask(t.Context(), "n1", netip.MustParseAddr("127.0.0.2"), to, nil); err != nil {
		t.Error(err)
	}
	many := map[string]string{}
	for i := range 33 {
		many[fmt.Sprint(i)] = ""
	}
	if _, err := peer.Ask(t.Context(), "n1", netip.MustParseAddr("127.0.0.2"), to, many); err == nil {
		t.Error("takes a question about 33 kinds")
	}
}

// request returns what a server sends to a program without rights, at an address.
func request(t *testing.T, from string, to netip.AddrPort) []byte {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("GET /followed HTTP/1.0\r\n\r\n")) // it may be closed already
	text, _ := io.ReadAll(c)                                 // or reset
	return text
}

// TestAnswererSteersNobody: what answers can send the agent nowhere else, and give it no more than an answer.
func TestAnswererSteersNobody(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusNoContent)
	}))
	defer other.Close()
	for name, answer := range map[string]http.Handler{
		"accepts all": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}),
		"redirects": http.RedirectHandler(other.URL, http.StatusFound),
		"large": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("a", 64<<10))
			w.WriteHeader(http.StatusNoContent)
		}),
	} {
		s := httptest.NewServer(answer)
		defer s.Close()
		at := netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://"))
		if _, err := peer.Ask(t.Context(), "n1", loopback, at, nil); err == nil || asked > 0 {
			t.Errorf("%s: error %v, and another server was asked %d times", name, err, asked)
		}
	}
}
