package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
)

// Ports of SNMP: of what is managed, which the Service has, and of managers.
const (
	pollPort = 161
	trapPort = 162
)

// TestMetalLBSNMP is story 1 of seed egress-service.md: a manager outside polls the pods by UDP at the Service's
// address, their traps come from it, and what the manager answers to a trap reaches its pod; also after a move.
func TestMetalLBSNMP(t *testing.T) {
	c := theBalanced(t)
	a := announce(t, c.number(191), false)
	manager := c.hosts[1]
	answerDatagrams(t, manager.Name, trapPort)
	a.hasAddresses()
	for i, host := range []sandbox.Member{c.nodes[2], c.nodes[0]} {
		if a.paints(host); i == 0 {
			a.egresses()
		}
		a.announcedBy(&host)
		a.polled(manager)
		a.trapped(manager)
	}
}

// polled says that every pod answers polls, each from the address that was polled: the manager's socket takes no other.
func (a announced) polled(manager sandbox.Member) {
	a.Helper()
	for _, ip := range a.balancer.ips {
		from := netip.AddrPortFrom(ofFamily(manager.IPs, ip)[0], 0)
		seen := map[string]bool{}
		within(a.T, soon, func() error {
			answer, err := datagram(manager.Name, from, netip.AddrPortFrom(ip, pollPort), "hostname")
			if seen[answer] = err == nil; err != nil {
				return err
			}
			for _, p := range announcedPods {
				if !seen[p] {
					return fmt.Errorf("%s polls %s: %s has not answered, of %v", manager.Name, ip, p, seen)
				}
			}
			return nil
		})
	}
}

// trapped says that every pod's trap comes from the address that is polled, and the manager's answer to it gets back.
func (a announced) trapped(manager sandbox.Member) {
	a.Helper()
	for _, ip := range a.balancer.ips {
		for _, p := range announcedPods {
			to := ofFamily(manager.IPs, ip)[0]
			source, err := a.n.sendsDatagram(p, netip.AddrPortFrom(to, trapPort), "trap")
			if err != nil || source.Addr() != ip {
				a.Errorf("a trap of %s to %s comes from %v (%v), want %s", p, to, source, err, ip)
			}
		}
	}
}

// sendsDatagram has a pod send one to answerDatagrams, and returns what that answers.
func (n *namespace) sendsDatagram(pod string, to netip.AddrPort, text string) (netip.AddrPort, error) {
	dial := fmt.Sprintf("/dial?host=%s&port=%d&protocol=udp&tries=1&request=%s", to.Addr(), to.Port(), text)
	out, err := n.exec(n.t.Context(), pod, "curl -sS --max-time 10 '"+url(netip.MustParseAddr("127.0.0.1"), podPort,
		dial)+"'")
	if err != nil {
		return netip.AddrPort{}, err
	}
	var said struct{ Responses, Errors []string }
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Responses) != 1 {
		return netip.AddrPort{}, errors.Join(err, fmt.Errorf("the pod says %q", out))
	}
	return netip.ParseAddrPort(said.Responses[0])
}

// answerDatagrams answers on a UDP port of a host outside with where each datagram came from.
func answerDatagrams(t *testing.T, host string, port int) {
	t.Helper()
	var conn *net.UDPConn
	must(t, sandbox.InNetns(host, func() (err error) {
		conn, err = net.ListenUDP("udp", &net.UDPAddr{Port: port})
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	go func() {
		for text := make([]byte, 256); ; {
			_, from, err := conn.ReadFromUDPAddrPort(text)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
			_, _ = conn.WriteToUDPAddrPort([]byte(from.String()), from)
		}
	}()
}
