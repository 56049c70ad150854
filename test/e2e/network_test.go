package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestPodNetwork is what every cluster has, without any egress feature.
func TestPodNetwork(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	n.runs(
		pod{name: "client", node: c.nodes[0], labels: map[string]string{"role": "client"}},
		pod{name: "same", node: c.nodes[0], labels: map[string]string{"role": "server"}},
		pod{name: "other", node: c.nodes[1], labels: map[string]string{"role": "server"}, hostPort: 30080},
		pod{name: "third", node: c.nodes[2]},
	)
	c.serveOnNodes(t)
	n.each(part{"PodToPod", podToPod}, part{"NodeToPod", nodeToPod}, part{"PodToNode", podToNode}, part{"PodToOutside",
		podToOutside},
		part{"LargeTransfer", largeTransfer}, part{"DNS", clusterDNS}, part{"ClusterIP", clusterIP}, part{"APIServer",
			apiServer},
		part{"HostPort", hostPort}, part{"HostPortFollows", hostPortFollows},
		part{"PastTheSwitch", pastTheSwitch}, part{"NoTunnel", noTunnel})
}

// part is a subtest in a namespace that others use too.
type part struct {
	name string
	test func(*testing.T, *namespace)
}

func (n *namespace) each(parts ...part) {
	for _, p := range parts {
		n.t.Run(p.name, func(t *testing.T) {
			in := *n
			in.t = t
			p.test(t, &in)
		})
	}
}

func podToPod(_ *testing.T, n *namespace) {
	for _, a := range []string{"client", "other", "third"} {
		for _, b := range []string{"client", "same", "other", "third"} {
			n.from(a).to(n.pod(b)).arrivesAs(n.ips[a]...)
		}
	}
}

func nodeToPod(t *testing.T, n *namespace) {
	for _, node := range n.c.nodes {
		for _, p := range []string{"client", "other", "third"} {
			n.c.from(t, node).to(n.pod(p)).arrivesAs(n.c.management(t, node.Name)...)
		}
	}
}

// podToNode: a pod is itself to its own node, and its node to the others.
func podToNode(_ *testing.T, n *namespace) {
	for i, p := range []string{"client", "other", "third"} {
		for j, node := range n.c.nodes {
			want := n.ips[p]
			if i != j {
				want = n.c.nodes[i].IPs
			}
			n.from(p).to(nodeServer(node)).arrivesAs(want...)
		}
	}
}

func podToOutside(_ *testing.T, n *namespace) {
	for i, p := range []string{"client", "other", "third"} {
		for h := range n.c.hosts {
			n.from(p).to(n.c.outside(h)).arrivesAs(n.c.nodes[i].IPs...)
		}
	}
}

// largeTransfer finds an MTU that is too large for tunnels: a stream then stalls.
func largeTransfer(t *testing.T, n *namespace) {
	const size, sink = 5_000_000, 7071
	serveIn(t, n.c.hosts[0].Name, sink, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, count)
	}))
	n.in("client", fmt.Sprintf("head -c %d /dev/zero > /tmp/zeros", size))
	for _, ip := range n.c.hosts[0].IPs {
		out := n.in("client", "curl -sS --max-time 20 --data-binary @/tmp/zeros "+url(ip, sink, "/"))
		if out != fmt.Sprint(size) {
			t.Errorf("pod to %s: %s of %d bytes arrive", ip, out, size)
		}
	}
	for _, ip := range n.ips["other"] {
		out := n.in("client", "curl -sS --max-time 20 -F file=@/tmp/zeros "+url(ip, podPort, "/upload"))
		if !strings.Contains(out, "output") {
			t.Errorf("pod to pod %s on another node: upload of %d bytes: %s", ip, size, out)
		}
	}
}

func clusterDNS(t *testing.T, n *namespace) {
	n.c.dnsAnswers(t)
	for _, p := range []string{"client", "other", "third"} {
		for _, kind := range []string{"A", "AAAA"} {
			out := n.in(p, "dig +short +search +time=2 +tries=1 kubernetes.default "+kind)
			want := n.c.service(t, "default", "kubernetes").Spec.ClusterIP
			if is4 := !strings.Contains(want, ":"); (kind == "A") == is4 && strings.TrimSpace(out) != want {
				t.Errorf("pod %s: %s of kubernetes.default is %q, want %s", p, kind, out, want)
			}
		}
	}
}

// dnsAnswers waits until the cluster's DNS answers a node: its only server restarts when a test before this one has cut
// the power of its node.
func (c *cluster) dnsAnswers(t *testing.T) {
	t.Helper()
	server := net.JoinHostPort(c.service(t, "kube-system", "kube-dns").Spec.ClusterIP, "53")
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		err = sandbox.InNetns(c.nodes[0].Name, func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, network, server)
			return err
		})
		return conn, err
	}}
	within(t, podsTimeout, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), lookTimeout)
		defer cancel()
		_, err := r.LookupNetIP(ctx, "ip", "kubernetes.default.svc.cluster.local.")
		return err
	})
}

func (c *cluster) service(t *testing.T, namespace, name string) *corev1.Service {
	t.Helper()
	s, err := c.api.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// clusterIP: the Service's address answers from every node and pod, and the client's address stays what it is.
func clusterIP(t *testing.T, n *namespace) {
	service := n.serves("web", map[string]string{"role": "server"})
	n.from("client").to(service).soonArrivesAs(n.ips["client"]...)
	n.from("third").to(service).soonArrivesAs(n.ips["third"]...)
	for _, node := range n.c.nodes {
		n.c.from(t, node).to(service).soonArrivesAs(n.c.management(t, node.Name)...)
	}
	out := n.in("third", "curl -sS --max-time 3 http://web/hostname")
	if out != "same" && out != "other" {
		t.Errorf("Service by its name: answer %q, want that of pod same or other", out)
	}
}

// serves makes a Service of pods with these labels.
func (n *namespace) serves(name string, labels map[string]string) endpoint {
	n.t.Helper()
	policy := corev1.IPFamilyPolicyPreferDualStack
	o, err := n.c.api.CoreV1().Services(n.name).Create(n.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Selector: labels, IPFamilyPolicy: &policy, Ports: []corev1.ServicePort{{Port: 80,
			TargetPort: intOrString(podPort)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return endpoint{"Service " + name, parseAll(o.Spec.ClusterIPs), 80}
}

func apiServer(t *testing.T, n *namespace) {
	const script = `cd /var/run/secrets/kubernetes.io/serviceaccount
		curl -sS --max-time 5 --cacert ca.crt -H "Authorization: Bearer $(cat token)" -H 'Content-Type: application/json' \
		-d '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}' \
		https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews`
	for _, p := range []string{"client", "other", "third"} {
		if out := n.in(p, script); !strings.Contains(out, "system:serviceaccount:"+n.name+":default") {
			t.Errorf("pod %s: the API server answers %s", p, out)
		}
	}
}

// hostPort reaches a pod by its node's addresses, from outside and from other nodes.
func hostPort(t *testing.T, n *namespace) {
	for _, who := range []sandbox.Member{n.c.hosts[0], n.c.hosts[1], n.c.nodes[0], n.c.nodes[2]} {
		for _, ip := range n.c.nodes[1].IPs {
			out, err := fetch(t.Context(), clientIn(who.Name), url(ip, 30080, "/hostname"))
			if err != nil || out != "other" {
				t.Errorf("%s to hostPort %s: answer %q, %v; want other", who.Name, ip, out, err)
			}
		}
	}
}

// hostPortFollows: a client that goes on sending from one port is answered by the pod that has the hostPort, also where
// that was added while the former one, deleted by force, still ended.
func hostPortFollows(t *testing.T, n *namespace) {
	const port = 31053
	node, none := n.c.nodes[1], int64(0)
	answeredBy := func(want string) error {
		var errs []error
		for i, ip := range node.IPs {
			from := netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(20100+i))
			if ip.Is4() {
				from = netip.AddrPortFrom(netip.IPv4Unspecified(), from.Port())
			}
			answer, err := datagram(n.c.hosts[0].Name, from, netip.AddrPortFrom(ip, port), "hostname")
			if err != nil || answer != want {
				errs = append(errs, fmt.Errorf("hostPort %d at %s: answer %q, %v; want %s", port, ip, answer, err,
					want))
			}
		}
		return errors.Join(errs...)
	}
	for _, name := range []string{"former", "successor"} {
		o := n.object(pod{name: name, node: node})
		main := &o.Spec.Containers[0]
		server := strings.Replace(main.Command[2], "exec ", "", 1)
		main.Command[2] = "trap : TERM; " + server + " & while :; do wait; done"
		main.Ports = []corev1.ContainerPort{{ContainerPort: udpPort, HostPort: port, Protocol: corev1.ProtocolUDP}}
		o.Spec.TerminationGracePeriodSeconds = nil
		pods := n.c.api.CoreV1().Pods(n.name)
		if _, err := pods.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		within(t, programmed, func() error { return answeredBy(name) })
		must(t, pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &none}))
	}
}

// startLimit is for a pod from its creation to Ready, on two busy cores.
const startLimit = 15 * time.Second

// TestPodStart: a pod is Ready soon after its creation, and all that it may reach answers then, outside too.
func TestPodStart(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	for i := range 3 {
		begin := time.Now()
		name := fmt.Sprint("pod-", i)
		n.runs(pod{name: name, node: c.nodes[1]})
		took := time.Since(begin)
		t.Logf("pod created to Ready: %s", took.Round(time.Millisecond))
		if took > startLimit {
			t.Errorf("pod %s is Ready after %s, want at most %s", name, took, startLimit)
		}
		n.from(name).to(c.outside(0)).arrivesAs(c.nodes[1].IPs...)
		n.from(name).to(n.pod("pod-0")).arrivesAs(n.ips[name]...)
	}
}
