package node

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// TestHealthFollowsSubnets: a node whose pod subnets become others answers on the management address of the new ones,
// and no more on that of the former.
func TestHealthFollowsSubnets(t *testing.T) {
	a := startPlainAgent(t)
	port := freePort(t)
	go a.serveHealth(t.Context(), Health{Port: port})
	move := func(subnets ...string) {
		var list []netip.Prefix
		for _, s := range subnets {
			list = append(list, netip.MustParsePrefix(s))
		}
		a.subnets.Store(&list)
		a.loop.Again()
	}
	move("127.71.0.0/24", "127.72.0.0/24")
	answers(t, "127.71.0.2", port, true)
	answers(t, "127.72.0.2", port, true)
	move("127.72.0.0/24", "127.73.0.0/24")
	answers(t, "127.73.0.2", port, true)
	answers(t, "127.71.0.2", port, false)
	answers(t, "127.72.0.2", port, true)
	move()
	time.Sleep(100 * time.Millisecond)
	answers(t, "127.72.0.2", port, true)
}

// TestCannotListen: an agent says where it answers also while it cannot listen there, for one that says no port is led
// to unasked. It is a problem as long as it can at none of its addresses.
func TestCannotListen(t *testing.T) {
	a := startPlainAgent(t)
	port := freePort(t)
	a.publisher = newPublisher("n1", kube.NewSource(nil, a.log), nil, nil, a.log)
	a.confirmed = func() bool { return true }
	a.api, a.config.AgentPort = &API{}, uint16(port)
	taken, err := net.Listen("tcp", fmt.Sprint("127.74.0.2:", port))
	if err != nil {
		t.Fatal(err)
	}
	use := func(subnets ...netip.Prefix) { a.subnets.Store(&subnets) }
	first := netip.MustParsePrefix("127.74.0.0/24")
	use(first)
	go a.serveAgents(t.Context(), port)
	a.awaitReport(t, "no other agent can ask", func(r Report) bool {
		return int(r.Port) == port && slices.ContainsFunc(r.Problems, isUnreachable)
	})
	use(first, netip.MustParsePrefix("127.75.0.0/24"))
	answers(t, "127.75.0.2", port, true)
	time.Sleep(healthRetry + time.Second) // the other one fails again
	a.awaitReport(t, "others can ask in one family", func(r Report) bool {
		return int(r.Port) == port && !slices.ContainsFunc(r.Problems, isUnreachable)
	})
	taken.Close()
	answers(t, "127.74.0.2", port, true)
}

func isUnreachable(p world.Problem) bool { return p.Reason == world.ReasonUnreachable }

// awaitReport waits for a report.
func (a *Agent) awaitReport(t *testing.T, what string, is func(Report) bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		w, there := compiletest.Small("n1", world.SharedGateway), false
		if err := a.loop.Ask(t.Context(), func(*world.World) {
			a.fillMailboxes(w, w.Node("n1"), w.Host(), hosting())
			there = is(a.last)
		}); err != nil {
			t.Fatal(err)
		}
		if there {
			return
		}
	}
	t.Fatalf("the report does not say that %s", what)
}

// TestNextFamily: after a question without an answer another node is asked in the other family.
func TestNextFamily(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	families := map[bool]bool{}
	for failed := range 4 {
		from, to, ok := addressesBetween(w, "n2", failed)
		if !ok || from.Is4() != to.Addr().Is4() || from.Is4() != (failed%2 == 0) {
			t.Errorf("after %d failures from %v to %v, %v", failed, from, to, ok)
		}
		families[from.Is4()] = true
	}
	if _, _, ok := addressesBetween(w, "nobody", 0); ok || len(families) != 2 {
		t.Errorf("asks a node that there is not: %v; families %v", ok, families)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// answers waits until connections to an address are accepted, or until they are refused.
func answers(t *testing.T, host string, port int, want bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", fmt.Sprint(host, ":", port), time.Second)
		if err == nil {
			c.Close()
		}
		if (err == nil) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v, want it to answer: %t", host, err, want)
		}
	}
}
