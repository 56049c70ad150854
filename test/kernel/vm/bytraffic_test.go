package vm

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// Pods with an EgressIP to one of a host's two addresses alone.
var (
	someTraffic = map[string]string{"app": "some"}
	someIPs     = []netip.Addr{netip.MustParseAddr("172.18.0.78"), netip.MustParseAddr("fc00:f853:ccd:e793::78")}
)

// byTraffic: pods on the holder and on the other node leave with the EgressIP to what an EgressIPTraffic names, and
// with their node's address elsewhere. When it names the other address, the two change places.
func (l *kernelLab) byTraffic() {
	l.traffic("some", l.outside[0])
	l.egressIPTo("some", someIPs, l.nodes[1], someTraffic)
	pods := []pod{l.pod("some-far", l.nodes[0], someTraffic), l.pod("some-near", l.nodes[1], someTraffic)}
	for i := range l.outside {
		l.traffic("some", l.outside[i])
		for _, p := range pods {
			l.isSoonSeenAs(p, someIPs, l.outside[i])
			l.isSoonSeenAs(p, p.node.IPs, l.outside[1-i])
		}
	}
	for _, p := range pods { // the last change took nothing else along
		p.isSeenAs(someIPs, l.outside[1:], sandbox.ClientIPPort)
		p.isSeenAs(p.node.IPs, l.outside[:1], sandbox.ClientIPPort)
	}
}

// traffic records an EgressIPTraffic of one address, with its name as a label.
func (l *kernelLab) traffic(name string, to netip.Addr) {
	t := v1.EgressIPTraffic{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressIPTraffic"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-traffic-" + name),
			Labels: map[string]string{"for": name}},
		Spec: v1.EgressIPTrafficSpec{DestinationNetworks: []v1.CIDR{v1.CIDR(single(to))}}}
	l.api.put(l.t, "/apis/"+v1.GroupVersion.String()+"/egressiptraffics/"+name, t)
}

// isSoonSeenAs waits until a host outside sees a pod so, after a change.
func (l *kernelLab) isSoonSeenAs(p pod, want []netip.Addr, to netip.Addr) {
	l.t.Helper()
	at := netip.AddrPortFrom(to, sandbox.ClientIPPort)
	l.eventually(fmt.Sprintf("pod %s to %s as one of %v", p.name, at, want), func(ctx context.Context) error {
		have, err := l.ask(ctx, p.node.Name, at, "ip", "netns", "exec", p.name)
		if err == nil && !slices.Contains(want, have) {
			err = fmt.Errorf("seen as %s", have)
		}
		return err
	})
}

// plainService: pods behind an EgressService without a network leave by the uplink of its host with the Service's
// addresses, those of the host and those of the other node.
func (l *kernelLab) plainService() {
	host := l.ExternalHosts()[0]
	for i, ip := range ingressIPs {
		l.in(host.Name, "ip", "route", "add", single(ip), "via", l.nodes[1].IPs[i].String())
		defer l.in(host.Name, "ip", "route", "del", single(ip))
	}
	pods := []pod{l.pod("plain-far", l.nodes[0], behindService), l.pod("plain-near", l.nodes[1], behindService)}
	l.loadBalancer("behind", pods...)
	l.egressServiceIs("behind", v1.EgressServiceSpec{SourceIPBy: v1.SourceIPLoadBalancer},
		v1.EgressServiceStatus{Host: l.nodes[1].Name, SourceIPs: texts(ingressIPs),
			InForce: []v1.IPFamily{v1.IPv4, v1.IPv6}})
	for _, p := range pods {
		for _, ip := range l.outside {
			l.isSoonSeenAs(p, ingressIPs, ip)
		}
		p.isSeenAs(ingressIPs, l.outside, sandbox.ClientIPPort)
	}
}
