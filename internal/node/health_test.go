package node

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"
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
