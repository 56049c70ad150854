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
	const flows = 300
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
	for _, to := range s.c.hosts[0].Secondary[0] {
		s.begunMeanwhile("a flush", netip.AddrPortFrom(to, 7093), flows, func(i int) {
			if i == flows/3 {
				go nft("flush ruleset")
			}
		})
		s.begunMeanwhile("a deletion while no agent runs", netip.AddrPortFrom(to, 7094), flows, func(i int) {
			switch i {
			case 0:
				must(s.T, s.c.StopProcess(s.T.Context(), holder, "egret-node"))
				nft(others + "delete table inet egret")
			case flows - 1:
				s.c.startAgent(s.T, holder)
			}
		})
	}
}

// begunMeanwhile has a pod begin flows while something happens, and says that all of them arrive with the egress IP
// some seconds later.
func (s second) begunMeanwhile(what string, to netip.AddrPort, flows int, happens func(flow int)) {
	r := &receiver{at: to}
	arrived := r.records(s.T, s.c.hosts[0].Name)
	var all []*net.UDPConn
	for i := range flows {
		happens(i)
		all = append(all, s.flow("a", r.at))
		time.Sleep(2 * time.Millisecond)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		s.send(all)
	}
	for len(arrived) > 0 {
		<-arrived
	}
	for range 5 { // a burst may find no room in the sandbox's switches
		s.send(all)
		time.Sleep(200 * time.Millisecond)
	}
	from := map[netip.AddrPort]bool{}
	for len(arrived) > 0 {
		a := <-arrived
		if from[a.from] = true; !slices.Contains(s.ips, a.from.Addr()) {
			s.Errorf("a datagram arrives as %s after %s", a.from, what)
		}
	}
	if len(from) != flows {
		s.Errorf("%d of %d flows to %s arrive after %s", len(from), flows, to, what)
	}
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

func (s second) send(flows []*net.UDPConn) {
	s.Helper()
	for _, conn := range flows {
		_, err := conn.Write([]byte("next"))
		must(s.T, err)
	}
}
