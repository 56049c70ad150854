package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

const (
	openPort   = 8090 // of a pod, by annotation
	closedPort = 8091 // of a pod, with a server that no probe and no annotation names
)

// TestDefaultInterface: the interface in the default network of a pod with a network of its own lets in the probes of
// its kubelet, and connections to the ports that the pod opens. The pod opens no connection by it.
func TestDefaultInterface(t *testing.T) {
	c := theCluster(t)
	c.inOneMode(t)
	n := c.namespace(t, map[string]string{v1.LabelPrimaryNetwork: ""})
	n.hasOwnNetwork("net")
	n.createsProbed("p", c.nodes[1])
	unread := n.object(pod{name: "unread", node: c.nodes[1]})
	unread.Annotations = map[string]string{v1.AnnotationOpenDefaultPorts: "tcp"}
	unread, err := c.api.CoreV1().Pods(n.name).Create(t.Context(), unread, metav1.CreateOptions{})
	must(t, err)
	n.awaits(pod{name: "p", node: c.nodes[1]}) // Ready: the probe by eth0 succeeds
	within(t, podsTimeout, func() error { return n.learn("unread") })
	within(t, soon, func() error { return c.hasEvent(unread.UID, v1.EventPortsClosed) })

	others := c.namespace(t, nil)
	others.runs(pod{name: "same", node: c.nodes[1]}, pod{name: "other", node: c.nodes[2]})
	at := func(port int) endpoint { return endpoint{"eth0 of p", n.ips["p"], port} }
	shut := []fromTo{c.from(t, c.nodes[1]).to(at(closedPort))}
	for _, from := range []from{others.from("same"), others.from("other"), c.from(t, c.nodes[2])} {
		shut = append(shut, from.to(at(closedPort)), from.to(at(podPort)))
	}
	for _, name := range []string{"same", "other"} {
		shut = append(shut, n.from("p").to(others.pod(name)))
	}
	areShut(shut...)
	c.from(t, c.nodes[1]).to(at(podPort)).arrivesAs(c.management(t, c.nodes[1].Name)...)
	c.from(t, c.nodes[1]).to(at(openPort)).arrivesAs(c.management(t, c.nodes[1].Name)...)
	c.from(t, c.nodes[2]).to(at(openPort)).arrivesAs(c.management(t, c.nodes[2].Name)...)
	others.from("same").to(at(openPort)).arrivesAs(others.ips["same"]...)
	others.from("other").to(at(openPort)).arrivesAs(others.ips["other"]...)
}

// hasOwnNetwork gives the namespace a network, of the cluster's families.
func (n *namespace) hasOwnNetwork(name string) {
	n.t.Helper()
	spec := v1.Layer3Config{Role: v1.RolePrimary}
	for _, ip := range n.c.nodes[0].IPs {
		subnet := v1.Layer3Subnet{CIDR: "10.128.0.0/16", HostSubnet: 24}
		if ip.Is6() {
			subnet = v1.Layer3Subnet{CIDR: "fd00:128::/48", HostSubnet: 64}
		}
		spec.Subnets = append(spec.Subnets, subnet)
	}
	own := &v1.UserDefinedNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name},
		Spec: v1.UserDefinedNetworkSpec{Topology: v1.TopologyLayer3, Layer3: &spec}}
	must(n.t, n.c.kube.EgressIP.Post().Namespace(n.name).Resource("userdefinednetworks").Body(own).
		Do(n.t.Context()).Error())
	n.hasNetwork("userdefinednetworks", n.name, name, n.name+"_"+name)
}

// createsProbed creates a pod whose kubelet probes podPort, with servers at two further ports.
func (n *namespace) createsProbed(name string, node sandbox.Member) {
	n.t.Helper()
	o := n.object(pod{name: name, node: node})
	o.Annotations = map[string]string{
		v1.AnnotationOpenDefaultPorts: fmt.Sprintf("[{protocol: tcp, port: %d}]", openPort)}
	server := &o.Spec.Containers[0]
	server.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(podPort)}}}
	for _, port := range []int{openPort, closedPort} {
		further := *server.DeepCopy()
		further.Name, further.ReadinessProbe = fmt.Sprint("server-", port), nil
		further.Command = []string{"/bin/sh", "-c",
			fmt.Sprintf("mkdir /uploads; exec /agnhost netexec --http-port=%d --udp-port=-1", port)}
		o.Spec.Containers = append(o.Spec.Containers, further)
	}
	_, err := n.c.api.CoreV1().Pods(n.name).Create(n.t.Context(), o, metav1.CreateOptions{})
	must(n.t, err)
}

// hasEvent says what an object lacks to have an Event with a reason.
func (c *cluster) hasEvent(uid types.UID, reason string) error {
	all := c.eventsOf(uid)
	if !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, " "+reason+" ") }) {
		return fmt.Errorf("no Event %s among %q", reason, all)
	}
	return nil
}

// areShut says that no connection comes through, to any address. All are tried at once.
func areShut(all ...fromTo) {
	var tries sync.WaitGroup
	for _, f := range all {
		for _, ip := range f.to.ips {
			one := f
			one.to.ips = []netip.Addr{ip}
			tries.Go(func() {
				if err := one.reachesNothing(); err != nil {
					one.t.Errorf("port %d: %v", one.to.port, err)
				}
			})
		}
	}
	tries.Wait()
}
