package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// Node ports of the Services of this file.
const (
	plainPort, affinePort, timedPort, lostPort, earlyPort = 30501, 30502, 30503, 30504, 30505
	earlyServer                                           = 7002 // in a pod
)

// affinity is for so many seconds.
func affinity(seconds int32) *corev1.SessionAffinityConfig {
	return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
}

// nodePort records a Service of pods. Without pods it has no endpoint. Sticky is its session affinity; nil: none.
func (l *kernelLab) nodePort(name string, number, nodePort, port int32, protocol corev1.Protocol,
	sticky *corev1.SessionAffinityConfig, pods ...pod) {
	affinity := corev1.ServiceAffinityNone
	if sticky != nil {
		affinity = corev1.ServiceAffinityClientIP
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{discoveryv1.LabelServiceName: name}}
	ip := fmt.Sprint("10.96.0.", number)
	l.api.put(l.t, "/api/v1/namespaces/"+namespace+"/services/"+name, corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: ip, ClusterIPs: []string{ip},
			SessionAffinity: affinity, SessionAffinityConfig: sticky,
			Ports: []corev1.ServicePort{{Port: port, NodePort: nodePort, Protocol: protocol}}},
	})
	slice := discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: meta,
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port, Protocol: &protocol}},
	}
	for _, p := range pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{p.ips()[0].String()},
			NodeName: &p.node.Name})
	}
	l.api.put(l.t, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices/"+name, slice)
}

// sticky: a client's first connection to a Service with session affinity of the default timeout is made as one to a
// Service without. With a shorter timeout it is made, too: OVN drops what begins it, and OVS' userspace datapath all
// that follows.
func (l *kernelLab) sticky() {
	for _, p := range []pod{l.near, l.plain} {
		serveInPod(p)
	}
	const tcp = corev1.ProtocolTCP
	l.nodePort("plain", 50, plainPort, sandbox.ClientIPPort, tcp, nil, l.near, l.plain)
	l.nodePort("affine", 51, affinePort, sandbox.ClientIPPort, tcp, affinity(10_800), l.near, l.plain)
	l.nodePort("timed", 54, timedPort, sandbox.ClientIPPort, tcp, affinity(600), l.near, l.plain)
	host, node := l.ExternalHosts()[0], l.nodes[0].IPs[0]
	ports := []uint16{plainPort, affinePort, timedPort}
	for _, port := range ports {
		l.eventually(fmt.Sprint("connection to node port ", port), func(context.Context) error {
			_, err := sentAgain(host, host.IPs[0], netip.AddrPortFrom(node, port))
			return err
		})
	}
	for i := range 8 {
		client := netip.AddrFrom4([4]byte{172, 18, 0, byte(120 + i)})
		l.in(host.Name, "ip", "address", "add", client.String()+"/24", "dev", "eth0")
		for _, port := range ports {
			again, err := sentAgain(host, client, netip.AddrPortFrom(node, port))
			l.t.Logf("%s to node port %d: %d segments sent again, %v", client, port, again, err)
			if err != nil || again > 0 && port != timedPort {
				l.t.Errorf("%s to node port %d: %d segments were sent again, %v", client, port, again, err)
			}
		}
	}
}

// sentAgain connects from an address of a host, and says how many segments that took more than it should.
func sentAgain(host sandbox.Member, from netip.Addr, to netip.AddrPort) (segments uint32, err error) {
	err = inNetns(host.Name, func() error {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: 30 * time.Second}
		conn, err := d.Dial("tcp", to.String())
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		var info *unix.TCPInfo
		asked := raw.Control(func(fd uintptr) {
			info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		})
		if err := errors.Join(asked, err); err != nil {
			return err
		}
		segments = info.Total_retrans
		return nil
	})
	return segments, err
}

// lostFirst: a connection by the port of a node without an endpoint is made, though its first SYN is lost on the way to
// the pod, or the answer.
func (l *kernelLab) lostFirst() {
	serveInPod(l.near)
	l.nodePort("lost", 52, lostPort, sandbox.ClientIPPort, corev1.ProtocolTCP, nil, l.near)
	host, at := l.ExternalHosts()[0], netip.AddrPortFrom(l.nodes[0].IPs[0], lostPort)
	connects := func(context.Context) error { _, err := sentAgain(host, host.IPs[0], at); return err }
	l.eventually("connection by another node's port", connects)
	for _, lost := range []struct{ hook, match string }{{"input", "dport"}, {"output", "sport"}} {
		in := func(command string) string {
			return l.in(l.near.node.Name, "ip", "netns", "exec", l.near.name, "nft", command)
		}
		in(fmt.Sprintf("add table inet lost; add chain inet lost lost { type filter hook %s priority 0; }; "+
			"add rule inet lost lost tcp %s %d counter drop", lost.hook, lost.match, sandbox.ClientIPPort))
		made := make(chan error, 1)
		go func() { made <- connects(l.t.Context()) }()
		time.Sleep(500 * time.Millisecond) // the client sends again after a second
		if have := in("list table inet lost"); strings.Contains(have, "packets 0 ") {
			l.t.Errorf("%s: nothing was lost:\n%s", lost.hook, have)
		}
		in("delete table inet lost")
		if err := <-made; err != nil {
			l.t.Errorf("lost at first, %s: %v", lost.hook, err)
		}
	}
}

// early: datagrams from one port, begun before the Service has an endpoint and sent without pause, are answered when it
// has one, by the port of a node without it.
func (l *kernelLab) early() {
	l.nodePort("early", 53, earlyPort, earlyServer, corev1.ProtocolUDP, nil)
	l.echoDatagrams(l.near, earlyServer)
	host, at := l.ExternalHosts()[0], netip.AddrPortFrom(l.nodes[0].IPs[0], earlyPort)
	var answered atomic.Int64
	if err := inNetns(host.Name, func() error { return l.sendsOn(at, &answered) }); err != nil {
		l.t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	l.nodePort("early", 53, earlyPort, earlyServer, corev1.ProtocolUDP, nil, l.near)
	l.eventually("answers to datagrams begun before there was an endpoint", func(context.Context) error {
		if answered.Load() == 0 {
			return fmt.Errorf("none yet")
		}
		return nil
	})
}

// sendsOn sends a datagram every tenth of a second, and counts answers, until the test ends.
func (l *kernelLab) sendsOn(to netip.AddrPort, answered *atomic.Int64) error {
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return err
	}
	l.t.Cleanup(func() { conn.Close() })
	go func() {
		for {
			if _, err := conn.Write([]byte("anybody?")); err != nil && strings.Contains(err.Error(), "closed") {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	go func() {
		for {
			switch _, err := conn.Read(make([]byte, 64)); {
			case err == nil:
				answered.Add(1)
			case strings.Contains(err.Error(), "closed"):
				return
			}
		}
	}()
	return nil
}
