package inspect_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/node/inspect"
	"github.com/egret-net/egret/internal/trace"
)

// echo answers with what it was asked.
type echo struct{}

func (echo) Plan(_ context.Context, object string) (string, error) { return "plan of " + object, nil }

func (echo) Differences(context.Context, string) (string, error) {
	return "", errors.New("the switch does not answer")
}

func (echo) Trace(_ context.Context, pod string, p trace.Packet) (string, error) {
	return pod + " " + p.Dst.String() + " " + p.Proto, nil
}

func serve(t *testing.T, a inspect.Agent) (socket string) {
	socket = filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- inspect.Serve(ctx, l, a) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

func TestQuestions(t *testing.T) {
	socket := serve(t, echo{})
	packet := url.Values{"pod": {"shop/web"}, "to": {"fd00::7"}, "protocol": {"udp"}, "port": {"53"}}
	for _, c := range []struct {
		path         string
		form         url.Values
		want, refuse string
	}{
		{path: "plan", form: url.Values{"owner": {"egressip/prod"}}, want: "plan of egressip/prod"},
		{path: "plan", form: url.Values{"diff": {"1"}}, refuse: "the switch does not answer"},
		{path: "trace", form: packet, want: "shop/web fd00::7 udp"},
		{path: "trace", form: url.Values{"to": {"example.com"}}, refuse: `"example.com" is no IP address`},
		{path: "trace", form: url.Values{"to": {"fd00::7"}, "port": {"99999"}}, refuse: `port "99999"`},
		{path: "trace", form: url.Values{"to": {"::7"}, "port": {"9"}, "protocol": {"gre"}}, refuse: `protocol "gre"`},
		{path: "trace", form: url.Values{"pod": {strings.Repeat("x", 1<<20)}}, refuse: "431"},
	} {
		text, err := inspect.Ask(t.Context(), socket, c.path, c.form)
		switch {
		case c.refuse == "" && (err != nil || text != c.want):
			t.Errorf("%s %v: %q, %v; want %q", c.path, c.form, text, err, c.want)
		case c.refuse != "" && (err == nil || !strings.Contains(err.Error(), c.refuse)):
			t.Errorf("%s: %q, %.200v; want refused with %s", c.path, text, err, c.refuse)
		}
	}
}

// TestNoAgent: who asks where no agent is reads what to do.
func TestNoAgent(t *testing.T) {
	_, err := inspect.Ask(t.Context(), filepath.Join(t.TempDir(), "agent.sock"), "plan", nil)
	if err == nil || !strings.Contains(err.Error(), "see whether the pod egret-node of this node runs") {
		t.Errorf("%v", err)
	}
}

// counting is an agent that is asked for its plan.
type counting struct {
	echo
	asked, most atomic.Int32
	answer      chan struct{}
}

func (c *counting) Plan(context.Context, string) (string, error) {
	now := c.asked.Add(1)
	defer c.asked.Add(-1)
	c.most.Store(max(c.most.Load(), now))
	<-c.answer
	return "", nil
}

// TestOneAtATime: however many ask, the loop has one question in a round.
func TestOneAtATime(t *testing.T) {
	a := &counting{answer: make(chan struct{})}
	socket := serve(t, a)
	ask := func(ctx context.Context, done chan<- error) {
		_, err := inspect.Ask(ctx, socket, "plan", nil)
		done <- err
	}
	first, others := make(chan error, 1), make(chan error, 8)
	go ask(t.Context(), first)
	for a.asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for range cap(others) {
		go ask(t.Context(), others)
	}
	a.answer <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
	for range cap(others) {
		a.answer <- struct{}{}
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	if n := a.most.Load(); n != 1 {
		t.Errorf("%d questions at once", n)
	}
}
