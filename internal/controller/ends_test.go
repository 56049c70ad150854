package controller

import (
	"net"
	"net/netip"
	"testing"
)

// heard is a Reach that remembers what it was told of.
type heard struct {
	Reach
	own, machine netip.Addr
}

func (h *heard) Heard(own, machine netip.Addr) { h.own, h.machine = own, machine }

// TestAnswersAreHeard: each answer of the API server is told of, with both ends of the connection; an error is none.
func TestAnswersAreHeard(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	reach := &heard{}
	l := lock{reach: reach, ends: &ends{}}
	l.noteAPIAnswer(nil) // before there is a connection
	c, err := l.ends.dialNoting(t.Context(), "tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if l.noteAPIAnswer(net.ErrClosed); reach.own.IsValid() {
		t.Errorf("an error is an answer from %s", reach.machine)
	}
	l.noteAPIAnswer(nil)
	if reach.own.String() != "127.0.0.1" || reach.machine.String() != "127.0.0.3" {
		t.Errorf("heard %s at %s", reach.machine, reach.own)
	}
}
