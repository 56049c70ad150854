package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestSelectedBehindService: a pod's answers to connections that come in by a Service have the Service's address,
// whatever egress IP the pod has for connections of its own.
func TestSelectedBehindService(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[0])
	n.runs(pod{name: "home", node: c.nodes[0], labels: web}, pod{name: "away", node: c.nodes[2], labels: web},
		pod{name: "client", node: c.nodes[1]})
	e := c.egressIP(t, "behind", c.number(62), n.itself(), selects(web))
	e.readyOn(c.nodes[0])
	cluster := n.nodePort("cluster", web, corev1.ServiceExternalTrafficPolicyCluster).tcp
	local := n.nodePort("local", web, corev1.ServiceExternalTrafficPolicyLocal).tcp
	service := n.serves("inside", web)
	n.each(
		part{"PolicyLocal", func(t *testing.T, n *namespace) {
			for _, node := range []sandbox.Member{c.nodes[0], c.nodes[2]} {
				// Until the bridge has the new port's flows, the host takes the connection, as those of its own.
				new := c.from(t, c.hosts[0]).to(endpoint{"node port of " + node.Name, node.IPs,
					local}).formerly(c.management(t, node.Name)...)
				new.soonArrivesAs(c.hosts[0].IPs...)
			}
		}},
		part{"PolicyCluster", func(t *testing.T, n *namespace) {
			for _, node := range c.nodes {
				_, err := c.from(t, c.hosts[0]).to(endpoint{"node port of " + node.Name, node.IPs, cluster}).sources(10)
				if err != nil {
					t.Error(err)
				}
			}
		}},
		part{"ClusterIP", func(t *testing.T,
			n *namespace) {
			n.from("client").to(service).soonArrivesAs(n.ips["client"]...)
		}},
		part{"Own", func(t *testing.T, n *namespace) {
			for _, p := range []string{"home", "away"} {
				n.from(p).to(c.outside(0)).arrivesAs(c.number(62)...)
			}
		}},
	)
}
