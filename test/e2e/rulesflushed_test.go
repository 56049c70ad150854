package e2e

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// rulesFlushed: somebody flushes the rules of the node that holds the address, as a reload of Debian's nftables.service
// does, or deletes ours while no agent runs. Some seconds later all that a pod sends has the egress IP, also what it
// began to send while they were away.
func (s second) rulesFlushed() {
	s.c.alikeInBoth(s.T)
	holder := s.c.nodes[1].Name
	nft := func(commands string) {
		if _, err := s.c.feed(context.Background(), holder, nil, "nft", commands); err != nil {
			s.Error(err)
		}
	}
	// The kernel follows connections as long as anybody's rules ask for it.
	const others = "add table inet others; add chain inet others f { type filter hook forward priority 0; }; " +
		"add rule inet others f ct state established accept; "
	s.Cleanup(func() { nft(others + "delete table inet others") })
	s.begunMeanwhile("a flush", 7093, func(flow int) {
		if flow == pairs/3 {
			go nft("flush ruleset")
		}
	})
	s.begunMeanwhile("a deletion while no agent runs", 7094, func(flow int) {
		switch flow {
		case 0:
			must(s.T, s.c.StopProcess(s.T.Context(), holder, "egret-node"))
			nft(others + "delete table inet egret")
		case pairs - 1:
			s.c.startAgent(s.T, holder)
		}
	})
}

// pairs are how many flows a pod begins over each family.
const pairs = 150

// begunMeanwhile has a pod begin flows while something happens, and says that all of them arrive with the egress IP
// some seconds later.
func (s second) begunMeanwhile(what string, port uint16, happens func(flow int)) {
	arrived := map[netip.Addr]<-chan arrival{}
	for _, to := range s.c.hosts[0].Secondary[0] {
		r := &receiver{at: netip.AddrPortFrom(to, port)}
		arrived[to] = r.records(s.T, s.c.hosts[0].Name)
	}
	var all []*net.UDPConn
	for i := range pairs {
		happens(i)
		for to := range arrived {
			all = append(all, s.flow("a", netip.AddrPortFrom(to, port)))
		}
		time.Sleep(2 * time.Millisecond)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		s.send(all)
	}
	for _, a := range arrived {
		drain(a)
	}
	for range 5 {
		s.send(all)
		time.Sleep(200 * time.Millisecond)
	}
	for to, a := range arrived {
		from := map[netip.AddrPort]bool{}
		for _, d := range drain(a) {
			if from[d.from] = true; !slices.Contains(s.ips, d.from.Addr()) {
				s.Errorf("a datagram arrives as %s after %s", d.from, what)
			}
		}
		if len(from) != pairs {
			s.Errorf("%d of %d flows to %s arrive after %s", len(from), pairs, to, what)
		}
	}
}

// drain is what has arrived.
func drain(arrived <-chan arrival) (all []arrival) {
	for len(arrived) > 0 {
		all = append(all, <-arrived)
	}
	return all
}

// flow is one that a pod has begun, open until the test ends.
func (s second) flow(pod string, to netip.AddrPort) (conn *net.UDPConn) {
	s.Helper()
	must(s.T, s.n.inside(pod, func() (err error) {
		if conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); err != nil {
			return err
		}
		_, err = conn.Write([]byte("first"))
		return err
	}))
	s.Cleanup(func() { conn.Close() })
	return conn
}

// send sends one datagram of each flow. A socket of ovs-vswitchd's has room for some 270 that it has not read yet: of a
// burst of more, the same ones are lost each time.
func (s second) send(flows []*net.UDPConn) {
	s.Helper()
	for portion := range slices.Chunk(flows, 50) {
		for _, conn := range portion {
			_, err := conn.Write([]byte("next"))
			must(s.T, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
