package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

// noTunnel: what a pod sends to the port of nodes' tunnels leaves its node nowhere. With its node's address as source
// it would be a packet of that node's tunnels. What it sends to the next port arrives.
func noTunnel(t *testing.T, n *namespace) {
	port := uint16(world.GenevePort)
	if n.c.Options().IPFamily != sandbox.Dual {
		port = otherEncapPort
	}
	for _, ip := range n.c.hosts[0].IPs {
		tunnel := receives(t, n.c.hosts[0].Name, netip.AddrPortFrom(ip, port))
		other := receives(t, n.c.hosts[0].Name, netip.AddrPortFrom(ip, port+1))
		within(t, soon, func() error {
			for _, to := range []*receiver{tunnel, other} {
				if err := n.inside("client", to.isSentOne); err != nil {
					return err
				}
			}
			if other.seen.Load() < 5 {
				return fmt.Errorf("%d datagrams at %s", other.seen.Load(), other.at)
			}
			return nil
		})
		if seen := tunnel.seen.Load(); seen > 0 {
			t.Errorf("%d datagrams of a pod at %s", seen, tunnel.at)
		}
	}
}

// receiver counts the datagrams that come to a place.
type receiver struct {
	at   netip.AddrPort
	seen atomic.Int64
}

func receives(t *testing.T, host string, at netip.AddrPort) *receiver {
	t.Helper()
	r := &receiver{at: at}
	var conn *net.UDPConn
	err := sandbox.InNetns(host, func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() {
		for b := make([]byte, 64); ; r.seen.Add(1) {
			if _, err := conn.Read(b); err != nil {
				return
			}
		}
	}()
	return r
}

// isSentOne sends a datagram from where it is called.
func (r *receiver) isSentOne() error {
	err := r.isSent([]byte("a datagram"))
	time.Sleep(10 * time.Millisecond)
	return err
}

func (r *receiver) isSent(data []byte) error {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.at))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write(data)
	return err
}
