package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestPathMTU: a router outside says that a pod's packets are too big. That reaches the pod wherever it is, and whoever
// translated its connection; else a transfer stalls.
func TestPathMTU(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	far := c.farHost(t)
	c.labelEgress(t, c.nodes[0])
	n.runs(pod{name: "plain", node: c.nodes[1], labels: map[string]string{"role": "plain"}}, pod{name: "selected",
		node: c.nodes[2], labels: web},
		pod{name: "home", node: c.nodes[0], labels: web})
	c.egressIP(t, "pmtu", c.number(61), n.itself(), selects(web)).readyOn(c.nodes[0])
	n.each(
		part{"Upload", func(t *testing.T, n *namespace) { uploads(t, n, far) }},
		part{"PolicyCluster", func(t *testing.T, n *namespace) {
			port := n.nodePort("cluster", map[string]string{"role": "plain"},
				corev1.ServiceExternalTrafficPolicyCluster)
			n.downloads(far, c.translatesErrors(t, c.nodes[0].IPs), port.tcp)
			n.downloads(far, c.translatesErrors(t, c.nodes[1].IPs), port.tcp)
			n.tooBig(c.nodes[0].IPs, port.udp)
			n.tooBig(c.nodes[1].IPs, port.udp)
		}},
		part{"PolicyLocal", func(t *testing.T, n *namespace) {
			port := n.nodePort("local", map[string]string{"role": "plain"}, corev1.ServiceExternalTrafficPolicyLocal)
			n.downloads(far, c.nodes[1].IPs, port.tcp)
			n.tooBig(c.nodes[1].IPs, port.udp)
		}},
		part{"PolicyClusterOfSelected", func(t *testing.T, n *namespace) {
			n.downloads(far, c.translatesErrors(t, c.nodes[1].IPs), n.nodePort("selected", web,
				corev1.ServiceExternalTrafficPolicyCluster).tcp)
		}},
		part{"PolicyLocalOfSelected", func(t *testing.T, n *namespace) {
			port := n.nodePort("selected-local", web, corev1.ServiceExternalTrafficPolicyLocal)
			n.downloads(far, c.nodes[0].IPs, port.tcp)
			n.downloads(far, c.nodes[2].IPs, port.tcp)
		}},
		part{"ExchangedGateway", func(t *testing.T, n *namespace) { exchanged(t, n, far) }},
	)
}

// translatesErrors are the addresses where OVS brings errors back to who is behind a connection with a translated
// source. The userspace datapath of OVS 3.5 writes over the first bytes of the inner source address when it translates
// the source of an ICMPv6 error, in shared gateway mode the gateway router's: the pod that gets the error does not know
// that connection.
func (c *cluster) translatesErrors(t *testing.T, ips []netip.Addr) []netip.Addr {
	if c.Datapath() != "netdev" || c.Options().GatewayMode != sandbox.Shared {
		return ips
	}
	t.Log("IPv6 left out: OVS' userspace datapath")
	return slices.DeleteFunc(slices.Clone(ips), netip.Addr.Is6)
}

// uploads are of connections that pods open: with their node's address, and with an egress IP that is on another node,
// or on the same.
func uploads(t *testing.T, n *namespace, far far) {
	const size, sink = 300_000, 7071
	serveIn(t, far.netns, sink, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, count)
	}))
	for _, p := range []string{"plain", "selected", "home"} {
		for _, ip := range far.ips {
			out := n.in(p, fmt.Sprintf("head -c %d /dev/zero | curl -sS --max-time 20 --data-binary @- %s", size,
				url(ip, sink, "/")))
			if out != fmt.Sprint(size) {
				t.Errorf("pod %s to %s behind a narrow link: %q, want %d bytes", p, ip, out, size)
			}
		}
	}
}

// downloads are of connections that come in by a node port.
func (n *namespace) downloads(far far, nodes []netip.Addr, port int) {
	n.t.Helper()
	for _, ip := range nodes {
		within(n.t, soon, func() error {
			out, err := fetch(n.t.Context(), clientIn(far.netns),
				url(ip, port, "/shell?cmd=head%20-c%2060000%20/dev/zero"))
			if err == nil && !strings.Contains(out, "output") {
				err = fmt.Errorf("answer of %d bytes without output", len(out))
			}
			if err != nil {
				return fmt.Errorf("from behind a narrow link to node port %s: %w", url(ip, port, ""), err)
			}
			return nil
		})
	}
}

// nodePorts are those of a Service.
type nodePorts struct{ tcp, udp int }

// nodePort makes a Service of pods with these labels.
func (n *namespace) nodePort(name string, labels map[string]string,
	policy corev1.ServiceExternalTrafficPolicy) nodePorts {
	n.t.Helper()
	families := corev1.IPFamilyPolicyPreferDualStack
	o, err := n.c.api.CoreV1().Services(n.name).Create(n.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: labels, IPFamilyPolicy: &families,
			ExternalTrafficPolicy: policy,
			Ports: []corev1.ServicePort{{Name: "tcp", Port: 80, TargetPort: intOrString(podPort)},
				{Name: "udp", Port: 80, TargetPort: intOrString(udpPort), Protocol: corev1.ProtocolUDP}}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return nodePorts{tcp: int(o.Spec.Ports[0].NodePort), udp: int(o.Spec.Ports[1].NodePort)}
}

// tooBig: a datagram of a host outside that pods' links do not carry is answered with the size that they do, not lost.
func (n *namespace) tooBig(nodes []netip.Addr, port int) {
	n.t.Helper()
	for _, ip := range nodes {
		within(n.t, soon, func() error {
			mtu, err := pathMTU(n.c.hosts[0].Name, netip.AddrPortFrom(ip, uint16(port)))
			if want := n.c.podMTU(); err == nil && mtu != want {
				err = fmt.Errorf("the path's MTU is %d, want %d", mtu, want)
			}
			return err
		})
	}
}

// linkMTU is of the fabric's links.
const linkMTU = 1500

// podMTU is that of pods' links.
func (c *cluster) podMTU() int {
	if strings.Contains(c.Options().Settings, "mtu=") {
		return otherMTU
	}
	return linkMTU - 100
}

// pathMTU is what a host knows of the way to an address, once it has sent a datagram there that fills its own link.
func pathMTU(netns string, to netip.AddrPort) (mtu int, err error) {
	level, discover, always, ask, headers := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO, unix.IP_MTU,
		20+8
	if to.Addr().Is6() {
		level, discover, always, ask, headers = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO,
			unix.IPV6_MTU, 40+8
	}
	var conn *net.UDPConn
	err = sandbox.InNetns(netns, func() (err error) {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	control := func(do func(fd int) error) error {
		var failed error
		return errors.Join(raw.Control(func(fd uintptr) { failed = do(int(fd)) }), failed)
	}
	if err := control(func(fd int) error { return unix.SetsockoptInt(fd, level, discover, always) }); err != nil {
		return 0, err
	}
	if _, err := conn.Write(make([]byte, linkMTU-headers)); err != nil && !errors.Is(err, unix.EMSGSIZE) {
		return 0, err
	}
	time.Sleep(200 * time.Millisecond) // the answer's way
	err = control(func(fd int) (err error) { mtu, err = unix.GetsockoptInt(fd, level, ask); return err })
	return mtu, err
}
