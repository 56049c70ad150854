package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// TestNetworkPods: pods of two networks with the same subnets, and of the default network. Pods of one network reach
// each other, nodes, the outside, the cluster's DNS and its API server. They do not reach pods of another network,
// which may have the same addresses.
func TestNetworkPods(t *testing.T) {
	c := theCluster(t)
	blue, red := c.tenant(t, "blue"), c.tenant(t, "red")
	blue.runs("blue-0", "blue-1")
	red.runs("red-0", "red-1", "red-2")
	same := blue.own["blue-0"][0] == red.own["red-0"][0] && blue.own["blue-1"][0] == red.own["red-1"][0]
	if !same || slices.Contains(concat(blue.all()...), red.own["red-2"][0]) {
		t.Fatalf("blue has %v and red %v: want the same addresses, and one more of red's", blue.own, red.own)
	}
	plain := c.namespace(t, nil)
	plain.runs(pod{name: "plain-0", node: c.nodes[0]}, pod{name: "plain-1", node: c.nodes[1]})
	c.serveOnNodes(t)
	for _, n := range []*tenant{blue, red} {
		n.each(part{n.network + "Interfaces", n.interfaces}, part{n.network + "Inside", n.inside},
			part{n.network + "Nodes", n.toNodes}, part{n.network + "Outside", n.outside},
			part{n.network + "DNSAndAPIServer", n.clusterServices})
	}
	t.Run("Isolation", func(t *testing.T) {
		plain.from("plain-1").to(plain.pod("plain-0")).arrivesAs(plain.ips["plain-1"]...)
		for _, x := range []struct {
			n    *namespace
			pod  string
			what string
			ips  []netip.Addr
		}{
			{blue.namespace, "blue-0", "red's pod of an address that blue does not have", red.own["red-2"]},
			{blue.namespace, "blue-0", "red's pods by the default network", concat(red.ips["red-0"], red.ips["red-1"])},
			{blue.namespace, "blue-0", "blue's pod by the default network", blue.ips["blue-1"]},
			{blue.namespace, "blue-0", "pods of the default network",
				concat(plain.ips["plain-0"], plain.ips["plain-1"])},
			{plain, "plain-0", "blue's pods", concat(blue.own["blue-0"], blue.own["blue-1"])},
			{plain, "plain-0", "blue's pods by the default network", concat(blue.ips["blue-0"], blue.ips["blue-1"])},
		} {
			x.n.reachesNone(t, x.pod, x.what, x.ips)
		}
	})
	t.Run("LinkLocal", func(t *testing.T) { blue.linkLocal(t, plain) })
}

// tenant is a namespace with its own network. The addresses of its pods in the default network are the namespace's, by
// which tests get into a pod; own has those in its network.
type tenant struct {
	*namespace
	network string
	own     map[string][]netip.Addr
}

// tenant makes a namespace, and in it a network with the subnets that all tenants have.
func (c *cluster) tenant(t *testing.T, network string) *tenant {
	t.Helper()
	n := &tenant{c.namespace(t, map[string]string{v1.LabelPrimaryNetwork: ""}), network, map[string][]netip.Addr{}}
	n.asksFor("10.128.0.0/16", "fd00:128::/48")
	n.hasNetwork("userdefinednetworks", n.name, network, n.name+"_"+network)
	return n
}

// asksFor creates the network of the tenant, with those of the subnets whose family the cluster has.
func (n *tenant) asksFor(subnets ...v1.CIDR) {
	n.t.Helper()
	spec := v1.Layer3Config{Role: v1.RolePrimary}
	for _, s := range subnets {
		if len(ofFamily(n.c.nodes[0].IPs, netip.MustParsePrefix(string(s)).Addr())) > 0 {
			spec.Subnets = append(spec.Subnets, v1.Layer3Subnet{CIDR: s})
		}
	}
	own := &v1.UserDefinedNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: n.network},
		Spec: v1.UserDefinedNetworkSpec{Topology: v1.TopologyLayer3, Layer3: &spec}}
	must(n.t, n.c.kube.EgressIP.Post().Namespace(n.name).Resource("userdefinednetworks").Body(own).
		Do(n.t.Context()).Error())
}

// runs creates pods one after the other, in turn on the first two nodes.
func (n *tenant) runs(names ...string) {
	n.t.Helper()
	for i, name := range names {
		n.starts(pod{name: name, node: n.c.nodes[i%2], sends: true})
		n.joins(name)
		if len(n.own[name]) != len(n.c.nodes[0].IPs) {
			n.t.Fatalf("pod %s has in its network %v", name, n.own[name])
		}
	}
}

// starts creates a pod that is Ready when its kubelet has probed it.
func (n *tenant) starts(p pod) {
	n.t.Helper()
	o := n.object(p)
	o.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Port: intOrString(podPort)}}}
	_, err := n.c.api.CoreV1().Pods(n.name).Create(n.t.Context(), o, metav1.CreateOptions{})
	must(n.t, err)
}

// joins waits until a pod is Ready, and notes its addresses in the network.
func (n *tenant) joins(name string) {
	n.t.Helper()
	within(n.t, podsTimeout, func() error { return n.learn(name) })
	n.own[name] = nil
	for _, text := range n.entries(name)[n.name+"/"+n.network].IPs {
		n.own[name] = append(n.own[name], netip.MustParsePrefix(text).Addr())
	}
}

func (n *tenant) all() (lists [][]netip.Addr) {
	for _, ips := range n.own {
		lists = append(lists, ips)
	}
	return lists
}

// podEntry is what annotation pod-networks says of one network.
type podEntry struct {
	IPs      []string `json:"ip_addresses"`
	MAC      string   `json:"mac_address"`
	Gateways []string `json:"gateway_ips"`
	Role     string   `json:"role"`
	Network  string   `json:"network"`
}

func (n *tenant) annotation(pod, key string, into any) {
	n.t.Helper()
	o, err := n.c.api.CoreV1().Pods(n.name).Get(n.t.Context(), pod, metav1.GetOptions{})
	must(n.t, err)
	if err := json.Unmarshal([]byte(o.Annotations[key]), into); err != nil {
		n.t.Fatalf("pod %s: annotation %s is %q: %v", pod, key, o.Annotations[key], err)
	}
}

func (n *tenant) entries(pod string) (out map[string]podEntry) {
	n.t.Helper()
	n.annotation(pod, v1.AnnotationPodNetworks, &out)
	return out
}

// during is the tenant in a subtest.
func (n *tenant) during(t *testing.T, namespace *namespace) *tenant {
	namespace.t = t
	return &tenant{namespace, n.network, n.own}
}

// endpoint is a pod's server in its network.
func (n *tenant) endpoint(pod string) endpoint {
	return endpoint{"pod " + pod + " on " + n.at[pod], n.own[pod], podPort}
}

// interfaces: both are in the answer to CNI ADD and in both annotations, and the default route is that of the network.
func (n *tenant) interfaces(t *testing.T, namespace *namespace) {
	in := n.during(t, namespace)
	for pod := range n.own {
		entries := in.entries(pod)
		own, byDefault := entries[n.name+"/"+n.network], entries["default"]
		if len(entries) != 2 || own.Role != "primary" || len(own.Gateways) != len(own.IPs) ||
			own.Network != n.name+"_"+n.network || byDefault.Role != "infrastructure-locked" ||
			byDefault.Gateways != nil {
			t.Errorf("pod %s: annotation %s: %+v", pod, v1.AnnotationPodNetworks, entries)
		}
		var links []struct {
			Name, Interface, MAC string
			IPs                  []netip.Addr
			Default              bool
		}
		in.annotation(pod, "k8s.v1.cni.cncf.io/network-status", &links)
		if len(links) != 2 || links[0].Interface != "eth0" || !slices.Equal(links[0].IPs, n.ips[pod]) ||
			links[0].Default || links[1].Interface != "ovn-udn1" || !slices.Equal(links[1].IPs, n.own[pod]) ||
			!links[1].Default || links[1].MAC != own.MAC {
			t.Errorf("pod %s: network-status: %+v", pod, links)
		}
		in.answeredByCNI(pod)
		if out := in.in(pod, "ip route show default; ip -6 route show default"); strings.Contains(out, "eth0") ||
			!strings.Contains(out, "ovn-udn1") {
			t.Errorf("pod %s has default routes:\n%s", pod, out)
		}
	}
}

// answeredByCNI reads the answer that the container runtime keeps.
func (n *tenant) answeredByCNI(pod string) {
	n.t.Helper()
	out := n.c.on(n.t, n.at[pod], "sh", "-c", `cat $(grep -lF '"K8S_POD_NAME","`+pod+`"' /var/lib/cni/results/*-eth0)`)
	var kept struct {
		Result struct {
			Interfaces []struct{ Name, Sandbox string }
			IPs        []struct {
				Interface int
				Address   netip.Prefix
			}
		}
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&kept); err != nil {
		n.t.Fatalf("pod %s: answer to ADD: %v\n%s", pod, err, out)
	}
	ips := map[string][]netip.Addr{}
	for _, ip := range kept.Result.IPs {
		if i := kept.Result.Interfaces[ip.Interface]; i.Sandbox != "" {
			ips[i.Name] = append(ips[i.Name], ip.Address.Addr())
		}
	}
	if len(ips) != 2 || !slices.Equal(ips["eth0"], n.ips[pod]) || !slices.Equal(ips["ovn-udn1"], n.own[pod]) {
		n.t.Errorf("pod %s: ADD has answered %+v", pod, kept.Result)
	}
}

// inside: each pod reaches each pod of its network with its own address, and the answer names a pod of this network.
func (n *tenant) inside(t *testing.T, namespace *namespace) {
	in := n.during(t, namespace)
	for a := range n.own {
		for b := range n.own {
			in.from(a).to(in.endpoint(b)).soonArrivesAs(n.own[a]...)
			for _, ip := range n.own[b] {
				if who, err := fetch(t.Context(), in.client(a), url(ip, podPort, "/hostname")); err != nil || who != b {
					t.Errorf("%s to %s, which is %s: %q answers, %v", a, ip, b, who, err)
				}
			}
		}
	}
}

// toNodes: a pod reaches all nodes, the others with its node's address. To its own node it never has an address of its
// network, which pods of other networks may have, too.
func (n *tenant) toNodes(t *testing.T, namespace *namespace) {
	in := n.during(t, namespace)
	for pod := range n.own {
		for _, node := range n.c.nodes {
			if node.Name != n.at[pod] {
				in.from(pod).to(nodeServer(node)).soonArrivesAs(n.nodeOf(pod)...)
				continue
			}
			seen, err := in.from(pod).to(nodeServer(node)).sources(1)
			own := slices.ContainsFunc(seen, func(a netip.Addr) bool { return slices.Contains(n.own[pod], a) })
			if err != nil || own {
				t.Errorf("%s to its own node arrives as %v, %v", pod, seen, err)
			}
		}
	}
}

func (n *tenant) nodeOf(pod string) []netip.Addr {
	i := slices.IndexFunc(n.c.nodes, func(m sandbox.Member) bool { return m.Name == n.at[pod] })
	return n.c.nodes[i].IPs
}

func (n *tenant) outside(t *testing.T, namespace *namespace) {
	in := n.during(t, namespace)
	for pod := range n.own {
		for h := range n.c.hosts {
			in.from(pod).to(n.c.outside(h)).soonArrivesAs(n.nodeOf(pod)...)
		}
	}
}

// clusterServices: names are resolved, and the API server answers by its name.
func (n *tenant) clusterServices(t *testing.T, namespace *namespace) {
	in := n.during(t, namespace)
	n.c.dnsAnswers(t)
	want := n.c.service(t, "default", "kubernetes").Spec.ClusterIP
	kind := "A"
	if strings.Contains(want, ":") {
		kind = "AAAA"
	}
	for pod := range n.own {
		out := in.in(pod, "dig +short +search +time=2 +tries=2 kubernetes.default "+kind)
		if strings.TrimSpace(out) != want {
			t.Errorf("pod %s: kubernetes.default is %q, want %s", pod, out, want)
		}
		const ask = `cd /var/run/secrets/kubernetes.io/serviceaccount
			curl -sS --max-time 5 --cacert ca.crt -H "Authorization: Bearer $(cat token)" \
			https://kubernetes.default/version`
		if out = in.in(pod, ask); !strings.Contains(out, "gitVersion") {
			t.Errorf("pod %s: the API server answers %s", pod, out)
		}
	}
}

// reachesNone says that no server answers a pod at any of some addresses.
func (n *namespace) reachesNone(t *testing.T, pod, what string, ips []netip.Addr) {
	t.Helper()
	errs := make([]error, len(ips))
	var all sync.WaitGroup
	for i, ip := range ips {
		all.Go(func() {
			if who, err := fetch(t.Context(), n.client(pod), url(ip, podPort, "/hostname")); err == nil {
				errs[i] = fmt.Errorf("%s: %q answers at %s", what, who, ip)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("pod %s reaches %v", pod, err)
	}
}
