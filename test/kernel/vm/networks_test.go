package vm

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

// The network blue is that of namespace tenant.
const (
	tenant   = "tenant"
	blueName = "tenant_blue"
	blueDev  = "ovn-udn1"
)

var (
	blueSelected = map[string]string{"app": "blue"}
	blueIPs      = []netip.Addr{netip.MustParseAddr("172.18.0.90"), netip.MustParseAddr("fc00:f853:ccd:e793::90")}
)

// blueSubnets are those of the i-th node.
func blueSubnets(i int) []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.130.%d.0/24", i)),
		netip.MustParsePrefix(fmt.Sprintf("fd00:10:130:%d::/64", i))}
}

// TestKernelDatapathNetworks: pods of a user's network with OVS' kernel datapath.
func TestKernelDatapathNetworks(t *testing.T) {
	for mode, name := range map[sandbox.GatewayMode]string{sandbox.Shared: "Shared", sandbox.Local: "Local"} {
		t.Run(name, func(t *testing.T) { testNetworks(t, mode) })
	}
}

func testNetworks(t *testing.T, mode sandbox.GatewayMode) {
	c := start(t, mode, asTheyAre)
	c.namespace()
	c.blue()
	outside := c.ExternalHosts()[0].IPs
	plain := c.pod("plain", c.nodes[0], nil)
	own := c.podIn(tenant, "own", c.nodes[0], nil)
	far, near := c.podIn(tenant, "far", c.nodes[0], blueSelected), c.podIn(tenant, "near", c.nodes[1], blueSelected)

	own.isSeenAs(c.nodes[0].IPs, outside, sandbox.ClientIPPort)
	e := egressIPObject("blue", blueIPs, c.nodes[1:], blueSelected)
	e.Annotations = map[string]string{v1.AnnotationEgressIPMark: "50001"}
	c.putEgressIP(e)
	lab := kernelLab{cluster: c, outside: outside}
	for _, p := range []pod{far, near} {
		for _, ip := range outside {
			lab.isSoonSeenAs(p, blueIPs, ip)
		}
		p.isSeenAs(blueIPs, outside, sandbox.ClientIPPort)
	}
	own.isSeenAs(c.nodes[0].IPs, outside, sandbox.ClientIPPort)

	for _, p := range []pod{plain, own, near} {
		serveInPod(p)
	}
	far.isSeenAs(far.ipsOf(blueDev), near.ipsOf(blueDev), sandbox.ClientIPPort)
	far.isSeenAs(far.ipsOf(blueDev), own.ipsOf(blueDev), sandbox.ClientIPPort)
	onHost := c.nodes[0].IPs
	serveIn(t, c.nodes[0].Name, netip.AddrPortFrom(onHost[0], nodePort))
	plain.isSeenAs(plain.ips(), onHost[:1], nodePort)
	other := c.pod("other", c.nodes[1], nil)
	other.isSeenAs(other.ips(), plain.ips(), sandbox.ClientIPPort)
	for f := range 2 {
		own.isCutOffFrom(plain.ips()[f])
		near.isCutOffFrom(plain.ips()[f])
		plain.isCutOffFrom(own.ipsOf(blueDev)[f])
		plain.isCutOffFrom(own.ips()[f])
		other.isCutOffFrom(own.ips()[f])
	}
}

// isCutOffFrom: a pod gets no answer of a server that others reach.
func (p pod) isCutOffFrom(server netip.Addr) {
	p.c.t.Helper()
	ctx, cancel := context.WithTimeout(p.c.t.Context(), soon)
	defer cancel()
	at := netip.AddrPortFrom(server, sandbox.ClientIPPort)
	if seen, err := p.c.ask(ctx, p.node.Name, at, "ip", "netns", "exec", p.name); err == nil {
		p.c.t.Errorf("pod %s reaches %s, and is seen as %s", p.name, at, seen)
	}
}

// blue records the network as egret-controller does.
func (c *cluster) blue() {
	c.api.put(c.t, "/api/v1/namespaces/"+tenant, corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: tenant, Labels: map[string]string{v1.LabelPrimaryNetwork: ""}},
	})
	config := networks.Config{Name: blueName, Subnets: []world.ClusterSubnet{
		{CIDR: netip.MustParsePrefix("10.130.0.0/16"), NodeLen: 24},
		{CIDR: netip.MustParsePrefix("fd00:10:130::/48"), NodeLen: 64}}}
	d := cniv1.NetworkAttachmentDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: cniv1.GroupVersion.String(), Kind: "NetworkAttachmentDefinition"},
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "blue", UID: types.UID("uid-blue"),
			Annotations: map[string]string{v1.AnnotationNetworkID: "1", v1.AnnotationNetworkName: blueName}},
		Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: kube.FormatNetworkConfig(config, tenant+"/blue")},
	}
	c.api.put(c.t, "/apis/"+cniv1.GroupVersion.String()+"/namespaces/"+tenant+"/network-attachment-definitions/blue", d)
}
