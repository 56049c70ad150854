package manifests

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/sandbox"
)

// bridgePlugin is the configuration of a plain pod network: the CNI project's reference plugins. Of each packet that
// leaves the node they make the node's address the source.
const bridgePlugin = `{"cniVersion":"1.0.0","name":"next","plugins":[
	{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,
	 "ipam":{"type":"host-local","ranges":[[{"subnet":%q}]],"routes":[{"dst":"0.0.0.0/0"}]}},
	{"type":"portmap","capabilities":{"portMappings":true}}]}`

const (
	hostPort  = 8099 // leads to a pod of the next plugin
	forgotten = 3    // a pod that Egret was removed under
)

// nextPlugin gives nodes that Egret has left another pod network, without a boot: pods reach each other on one node and
// across nodes, and hosts outside with their node's address. They are reached by a hostPort. A pod that Egret was
// removed under can be deleted.
func (l *lab) nextPlugin() {
	l.t.Helper()
	for i, n := range l.nodes {
		l.bridges(n, i)
		for other, via := range l.nodes {
			if other != i {
				l.on(n, "ip", "route", "add", nextRange(other).String(), "via", via.IPs[0].String())
			}
		}
	}
	l.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout", patience.String())
	// With a grace period the object goes when the kubelet has taken the pod down.
	l.kubectl("delete", "pod", fmt.Sprint("web-", forgotten), "--grace-period=1", "--timeout=1m")
	first, second := l.nodes[0], l.nodes[1]
	l.pod(0, first, fmt.Sprintf(`,"ports":[{"containerPort":8080,"hostPort":%d}]`, hostPort))
	l.pod(1, second, "")
	l.pod(2, first, "")
	l.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout", patience.String())
	var ips [3]string
	for i := range ips {
		ips[i] = l.kubectl("get", "pod", fmt.Sprint("web-", i), "-o", "jsonpath={.status.podIP}")
		if node := i % 2; !nextRange(node).Contains(netip.MustParseAddr(ips[i])) {
			l.t.Errorf("pod %d has address %s, want one of %s", i, ips[i], nextRange(node))
		}
	}
	l.isSeenAs(2, "http://"+ips[0]+":8080/clientip", ips[2])
	l.isSeenAs(0, "http://"+ips[2]+":8080/clientip", ips[0])
	l.isSeenAs(0, "http://"+ips[1]+":8080/clientip", first.IPs[0].String())
	l.isSeenAs(1, "http://"+ips[0]+":8080/clientip", second.IPs[0].String())
	l.isSeenAs(0, l.outside(), first.IPs[0].String())
	l.isSeenAs(1, l.outside(), second.IPs[0].String())
	l.forwardsHostPort(first)
}

// nextRange is that of a node's pods.
func nextRange(node int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.99.%d.0/24", node))
}

// bridges has a node's runtime find the plugins' configuration.
func (l *lab) bridges(n sandbox.Member, number int) {
	l.t.Helper()
	l.on(n, "sh", "-c", `printf %s "$1" >/etc/cni/net.d/10-next.conflist`, "sh",
		fmt.Sprintf(bridgePlugin, nextRange(number)))
}

// forwardsHostPort: a host outside reaches the pod by its node.
func (l *lab) forwardsHostPort(node sandbox.Member) {
	l.t.Helper()
	host := l.ExternalHosts()[0]
	at := netip.AddrPortFrom(node.IPs[0], hostPort).String()
	l.eventually("a hostPort", func() error {
		out, err := l.ExecIn(l.t.Context(), host.Name, "curl", "-sS", "--max-time", "5", "http://"+at+"/clientip")
		if err == nil && !strings.HasPrefix(string(out), host.IPs[0].String()+":") {
			err = fmt.Errorf("%s is seen as %q", host.Name, out)
		}
		return err
	})
}

// on runs a command on a node or a host outside.
func (l *lab) on(where sandbox.Member, command ...string) string {
	l.t.Helper()
	out, err := l.ExecIn(l.t.Context(), where.Name, command...)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(out)
}
