package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// pings: pods of two nodes ping one host through one egress IP, with the same id of ICMP, and each gets its answers.
// The userspace datapath of OVS 3.5 cannot: it translates no ids.
func (l *kernelLab) pings() {
	const id, rounds = 77, 5
	for _, ip := range l.outside {
		for _, p := range []pod{l.far, l.near} {
			l.eventually(fmt.Sprintf("first answer of %s to pod %s", ip, p.name), func(context.Context) error {
				return l.inPod(p, func() error { return ping(ip, id) })
			})
		}
		for range rounds {
			for _, p := range []pod{l.far, l.near} {
				if err := l.inPod(p, func() error { return ping(ip, id) }); err != nil {
					l.t.Errorf("pod %s has no answer of %s: %v", p.name, ip, err)
				}
			}
		}
	}
}

// ping sends one request and waits for its answer.
func ping(to netip.Addr, id int) error {
	network, request, protocol := "ip4:icmp", icmp.Type(ipv4.ICMPTypeEcho), 1
	if to.Is6() {
		network, request, protocol = "ip6:ipv6-icmp", ipv6.ICMPTypeEchoRequest, 58
	}
	conn, err := icmp.ListenPacket(network, "")
	if err != nil {
		return err
	}
	defer conn.Close()
	message, err := (&icmp.Message{Type: request, Body: &icmp.Echo{ID: id, Seq: 1, Data: []byte("ping")}}).Marshal(nil)
	if err != nil {
		return err
	}
	if _, err := conn.WriteTo(message, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	for buf := make([]byte, 1500); ; {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return errors.Join(errors.New("no answer"), err)
		}
		answer, err := icmp.ParseMessage(protocol, buf[:n])
		if err != nil || answer.Type != ipv4.ICMPTypeEchoReply && answer.Type != ipv6.ICMPTypeEchoReply {
			continue
		}
		if echo, is := answer.Body.(*icmp.Echo); is && echo.ID == id {
			return nil
		}
	}
}
