package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// lostFirst: a host outside connects by a node without an endpoint, and what comes first to the endpoint is lost, or
// its answers. What the client sends again is answered, from a pod and from a host.
func lostFirst(t *testing.T, n *namespace) {
	host := n.c.nodes[0].Name
	for i, to := range []string{"one", host} {
		s := n.balances(fmt.Sprint("lost-first-", i), 170+10*i, nil, to)
		at := s.on(n.c.nodes[2])
		n.c.from(t, n.c.hosts[0]).to(at).answeredBy(to)
		nft := n.nftOf(to)
		if to == host {
			nft = n.c.nftOn(host)
		}
		for _, lost := range []string{"input tcp dport", "output tcp sport"} {
			for _, ip := range at.ips {
				if err := connectsLate(t, n.c.hosts[0].Name, netip.AddrPortFrom(ip, uint16(at.port)), nft,
					lost); err != nil {
					t.Errorf("%s, %s lost at first: %v", at.name, lost, err)
				}
			}
		}
	}
	n.askedEarly(t, n.balances("lost-datagrams", 190, nil, "one"))
}

// connectsLate is nil if a connection is made that begins while packets are lost.
func connectsLate(t *testing.T, host string, to netip.AddrPort, nft nftCommand, lost string) error {
	t.Helper()
	restore := nft.loses(t, lost, podPort)
	made := make(chan error, 1)
	go func() {
		made <- sandbox.InNetns(host, func() error {
			conn, err := net.DialTimeout("tcp", to.String(), 10*time.Second)
			if err == nil {
				err = conn.Close()
			}
			return err
		})
	}()
	time.Sleep(300 * time.Millisecond) // the client sends again after a second
	return errors.Join(restore(), <-made)
}

// askedEarly: a client that sends datagrams without a pause, of which the first are lost, is answered.
func (n *namespace) askedEarly(t *testing.T, s balanced) {
	t.Helper()
	service := n.c.service(t, n.name, s.name)
	for _, ip := range n.c.nodes[2].IPs {
		to := netip.AddrPortFrom(ip, uint16(service.Spec.Ports[1].NodePort))
		within(t, programmed, func() error {
			_, err := datagram(n.c.hosts[0].Name, netip.AddrPort{}, to, "hostname")
			return err
		})
		restore := n.nftOf("one").loses(t, "input udp dport", udpPort)
		a := asks(t, n.c.hosts[0].Name, to, "hostname")
		time.Sleep(100 * time.Millisecond) // it has asked twenty times
		if err := restore(); err != nil {
			t.Errorf("%s: %v", to, err)
		}
		within(t, soon, func() error {
			if a.answered.Load() == 0 {
				return fmt.Errorf("%s does not answer one whose first datagrams were lost", to)
			}
			return nil
		})
	}
}

// nftCommand gives a command to nft in one network namespace.
type nftCommand func(ctx context.Context, command string) (out string, err error)

// nftOf is that of a pod, which has no nft itself.
func (n *namespace) nftOf(pod string) nftCommand {
	return func(ctx context.Context, command string) (out string, err error) {
		err = n.inside(pod, func() error {
			said, err := exec.CommandContext(ctx, "nft", command).CombinedOutput()
			out = string(said)
			return err
		})
		return out, err
	}
}

// nftOn is a node's own.
func (c *cluster) nftOn(node string) nftCommand {
	return func(ctx context.Context, command string) (string, error) {
		return c.feed(ctx, node, nil, "nft", command)
	}
}

// loses has all be lost that a hook and a match tell. Restore ends that, and says whether anything was.
func (nft nftCommand) loses(t *testing.T, lost string, port int) (restore func() error) {
	t.Helper()
	hook, match, _ := strings.Cut(lost, " ")
	if out, err := nft(t.Context(), fmt.Sprintf("add table inet lost; add chain inet lost lost { type filter hook %s "+
		"priority 0; }; add rule inet lost lost %s %d counter drop", hook, match, port)); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	end := func() error {
		_, err := nft(context.Background(), "delete table inet lost")
		return err
	}
	t.Cleanup(func() { _ = end() })
	return func() error {
		out, err := nft(t.Context(), "list table inet lost")
		if err == nil && !regexp.MustCompile(`packets [1-9]`).MatchString(out) {
			err = errors.New("nothing was lost")
		}
		return errors.Join(err, end())
	}
}
