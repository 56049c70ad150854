package vm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	datagramServer = 7001
	// largeDatagram takes three fragments.
	largeDatagram = 3000
)

// largePort is the node port of a Service whose clients send datagrams in fragments.
const largePort = 30516

// datagrams: one that comes in fragments is balanced, too, as a connection's first packet, and so is its answer. The
// userspace datapath of OVS 3.5 cannot: its fragments go on one by one after conntrack, and only the first has the port
// that OVN's load balancers match.
func (l *kernelLab) datagrams() {
	vip := netip.MustParseAddr("10.96.0.33")
	l.service("datagrams", vip, netip.AddrPortFrom(l.near.ips()[0], datagramServer), corev1.ProtocolUDP)
	l.echoDatagrams(l.near, datagramServer)
	for _, size := range []int{100, largeDatagram} {
		l.eventually(fmt.Sprintf("a datagram of %d bytes to a cluster IP, and its answer", size),
			func(context.Context) error {
				return l.inPod(l.plain, func() error { return exchange(netip.AddrPortFrom(vip, 80), size) })
			})
	}
	l.nodePort("large", 55, largePort, datagramServer, corev1.ProtocolUDP, nil, l.near)
	for _, n := range l.nodes {
		at := netip.AddrPortFrom(n.IPs[0], largePort)
		l.eventually(fmt.Sprintf("a datagram in fragments to node port %s, and its answer", at),
			func(context.Context) error {
				return inNetns(l.ExternalHosts()[0].Name, func() error { return exchange(at, largeDatagram) })
			})
	}
}

// echoDatagrams sends everything back that a pod gets at a port.
func (l *kernelLab) echoDatagrams(p pod, port int) {
	l.t.Helper()
	l.echo(port, func(do func() error) error { return l.inPod(p, do) })
}

// echo does it in a network namespace.
func (l *kernelLab) echo(port int, in func(do func() error) error) {
	l.t.Helper()
	var server net.PacketConn
	err := in(func() (err error) {
		server, err = net.ListenPacket("udp", fmt.Sprint(":", port))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { server.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(buf[:n], from)
		}
	}()
}

// exchange sends one datagram from a new port and waits for as much.
func exchange(to netip.AddrPort, size int) error {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write(make([]byte, size)); err != nil {
		return err
	}
	n, err := conn.Read(make([]byte, 1<<16))
	if err == nil && n != size {
		err = fmt.Errorf("an answer of %d bytes, want %d", n, size)
	}
	return err
}
