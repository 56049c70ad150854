package vm

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

const (
	bigServer = 7003 // of a host outside
	// whole is larger than pods' links carry, and no larger than those outside.
	whole = 1420
)

// tooBig: what answers an egress IP and is larger than pods' links carry arrives, of a sender that lets it be cut, and
// fragments do. So it is for the pod on the node of the egress IP, and for the one elsewhere.
func (l *kernelLab) tooBig() {
	host := l.ExternalHosts()[0]
	l.echo(bigServer, func(do func() error) error { return sandbox.InNetns(host.Name, do) })
	l.in(host.Name, "sysctl", "-qw", "net.ipv4.ip_no_pmtu_disc=1") // no answer forbids to be cut
	for _, p := range []pod{l.far, l.near} {
		for _, ip := range l.outside {
			for _, size := range []int{100, whole, largeDatagram} {
				l.eventually(fmt.Sprintf("an answer of %d bytes from %s to pod %s", size, ip, p.name),
					func(context.Context) error {
						return l.inPod(p, func() error { return exchange(netip.AddrPortFrom(ip, bigServer), size) })
					})
			}
		}
	}
}

// pathMTU: pods learn from a router's ICMP errors what a link outside carries, whatever address they left with. The
// host behind that link says that it takes larger segments, so that nothing else tells them.
func (l *kernelLab) pathMTU() {
	far := l.farHost("1300")
	for _, p := range []pod{l.far, l.near, l.plain} {
		for _, ip := range far.ips {
			l.eventually(fmt.Sprintf("an upload of pod %s to %s", p.name, ip), func(context.Context) error {
				return l.inPod(p, func() error { return upload(netip.AddrPortFrom(ip, bigServer)) })
			})
		}
	}
	for _, f := range []string{"-4", "-6"} {
		if known := l.in(l.near.node.Name, "ip", "netns", "exec", l.near.name, "ip", f, "route", "get",
			far.of(f).String()); !strings.Contains(known, "mtu 1300") {
			l.t.Errorf("pod %s does not know what the link carries: %s", l.near.name, known)
		}
	}
}

// farHost is a host behind the fabric's router and a link that carries less than pods' do.
type farHost struct{ ips []netip.Addr }

func (f farHost) of(flag string) netip.Addr { return f.ips[map[string]int{"-4": 0, "-6": 1}[flag]] }

func (l *kernelLab) farHost(mtu string) farHost {
	l.t.Helper()
	const name = "far-host"
	router := l.FabricNetns()
	l.ip("netns add " + name)
	l.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	l.ip("link add far0 mtu " + mtu + " netns " + router + " type veth peer name eth0 mtu " + mtu + " netns " + name)
	l.ip("-n " + name + " link set eth0 up")
	l.ip("-n " + router + " link set far0 up")
	l.ip("netns exec " + router + " sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
	l.ip("-n " + router + " addr add 192.0.2.1/24 dev far0")
	l.ip("-n " + name + " addr add 192.0.2.2/24 dev eth0")
	l.ip("-n " + name + " route add default via 192.0.2.1 advmss 1460")
	l.ip("-n " + router + " addr add 2001:db8:2::1/64 dev far0 nodad")
	l.ip("-n " + name + " addr add 2001:db8:2::2/64 dev eth0 nodad")
	l.ip("-n " + name + " route add default via 2001:db8:2::1 advmss 1440")
	f := farHost{[]netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8:2::2")}}
	for _, ip := range f.ips {
		l.swallow(name, netip.AddrPortFrom(ip, bigServer))
	}
	return f
}

// ip runs the command of this name beside all nodes.
func (c *cluster) ip(arguments string) {
	c.t.Helper()
	if out, err := exec.CommandContext(c.t.Context(), "ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		c.t.Fatalf("ip %s: %v\n%s", arguments, err, out)
	}
}

// uploaded is so much that it takes many segments of any size.
const uploaded = 200_000

// swallow reads each connection to its end and says how much that was.
func (l *kernelLab) swallow(namespace string, at netip.AddrPort) {
	l.t.Helper()
	var server net.Listener
	err := sandbox.InNetns(namespace, func() (err error) {
		server, err = net.Listen("tcp", at.String())
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				n, _ := io.Copy(io.Discard, conn)
				fmt.Fprint(conn, n)
			}()
		}
	}()
}

// upload sends and waits until the other end says that it has all.
func upload(to netip.AddrPort) error {
	conn, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := conn.Write(make([]byte, uploaded)); err != nil {
		return err
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	said, err := io.ReadAll(conn)
	if err == nil && string(said) != fmt.Sprint(uploaded) {
		err = fmt.Errorf("%q bytes have arrived, want %d", said, uploaded)
	}
	return err
}
