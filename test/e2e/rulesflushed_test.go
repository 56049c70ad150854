package e2e

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// rulesFlushed: somebody flushes the rules of the node that holds the address, as a reload of Debian's nftables.service
// does. Some seconds later all that a pod sends has the egress IP, also what it began to send while they were away.
func (s second) rulesFlushed() {
	s.c.alikeInBoth(s.T)
	const flows, port = 300, 7093
	for _, to := range s.c.hosts[0].Secondary[0] {
		r := &receiver{at: netip.AddrPortFrom(to, port)}
		arrived := r.records(s.T, s.c.hosts[0].Name)
		var all []*net.UDPConn
		for i := range flows {
			if i == flows/3 {
				go s.c.feed(context.Background(), s.c.nodes[1].Name, nil, "nft", "flush", "ruleset")
			}
			all = append(all, s.flow("a", r.at))
			time.Sleep(2 * time.Millisecond)
		}
		for end := time.Now().Add(7 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
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
				s.Errorf("a datagram arrives as %s", a.from)
			}
		}
		if len(from) != flows {
			s.Errorf("%d of %d flows to %s arrive after rules were flushed", len(from), flows, to)
		}
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
