package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// notReadyTimeout bounds what waits for Kubernetes to call a node NotReady, which takes 8 s here.
const notReadyTimeout = 40 * time.Second

var web = map[string]string{"app": "web"}

// TestEgressIP is the example of seed egress-ip.md: two addresses, both selectors, pods on egress nodes and on others.
func TestEgressIP(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, map[string]string{"environment": "production"})
	development := c.namespace(t, map[string]string{"environment": "development"})
	c.labelEgress(t, c.nodes[0], c.nodes[1])
	n.runs(
		pod{name: "web-1", node: c.nodes[0], labels: web, hostPort: 30081}, pod{name: "web-2", node: c.nodes[1],
			labels: web},
		pod{name: "web-3", node: c.nodes[2], labels: web, hostPort: 30083}, pod{name: "db-1", node: c.nodes[0]},
		pod{name: "db-3", node: c.nodes[2]},
	)
	development.runs(pod{name: "web", node: c.nodes[2], labels: web})
	c.serveOnNodes(t)
	ips := [][]netip.Addr{c.number(33)[:1], c.number(44)[:1]}
	e := c.egressIP(t, "egressip-prod", concat(ips...), selectsWhere("environment", metav1.LabelSelectorOpNotIn,
		"development"), selects(web))
	where := e.ready()
	if where[ips[0][0].String()] == where[ips[1][0].String()] || len(where) != 2 {
		t.Fatalf("addresses on nodes %v, want two nodes", where)
	}
	n.each(
		part{"Leaves", func(_ *testing.T, n *namespace) {
			for _, p := range []string{"web-1", "web-2", "web-3"} {
				n.from(p).to(family4or6(c.outside(0), ips[0][0])).spreadsOver(concat(ips...)...)
			}
			n.from("db-1").to(c.outside(0)).arrivesAs(c.nodes[0].IPs...)
			n.from("db-3").to(c.outside(0)).arrivesAs(c.nodes[2].IPs...)
			development.from("web").to(c.outside(0)).arrivesAs(c.nodes[2].IPs...)
		}},
		part{"InsideUntouched", insideUntouched},
		part{"RepliesUntouched", repliesUntouched},
		part{"Columns", func(t *testing.T, _ *namespace) { columns(t, c, e) }},
	)
	e.delete()
	for i, p := range []string{"web-1", "web-2", "web-3"} {
		n.from(p).to(c.outside(0)).formerly(concat(ips...)...).soonArrivesAs(c.nodes[i].IPs...)
	}
}

// family4or6 is the endpoint's address of ip's family only.
func family4or6(e endpoint, ip netip.Addr) endpoint {
	e.ips = slices.DeleteFunc(slices.Clone(e.ips), func(a netip.Addr) bool { return a.Is4() != ip.Is4() })
	return e
}

// insideUntouched: pods, nodes and Services see selected pods as they see all others.
func insideUntouched(t *testing.T, n *namespace) {
	service := n.serves("db", map[string]string{"app": "web"})
	for i, p := range []string{"web-1", "web-2", "web-3"} {
		for _, other := range []string{"web-1", "web-2", "web-3", "db-1", "db-3"} {
			n.from(p).to(n.pod(other)).arrivesAs(n.ips[p]...)
		}
		for j, node := range n.c.nodes {
			want := n.ips[p]
			if i != j {
				want = n.c.nodes[i].IPs
			}
			n.from(p).to(nodeServer(node)).arrivesAs(want...)
		}
	}
	n.from("db-3").to(service).soonArrivesAs(n.ips["db-3"]...)
	n.c.dnsAnswers(t)
	for _, p := range []string{"web-1", "web-3"} {
		if out := n.in(p, "curl -sS --max-time 3 -k -o /dev/null -w '%{http_code}' "+
			"https://kubernetes.default.svc/version"); out != "200" {
			t.Errorf("selected pod %s to the API server's Service: status %q, want 200", p, out)
		}
	}
}

// repliesUntouched: who connects to a selected pod, from a node or through a hostPort, gets its answers.
func repliesUntouched(t *testing.T, n *namespace) {
	for _, node := range n.c.nodes {
		for _, p := range []string{"web-1", "web-2", "web-3"} {
			n.c.from(t, node).to(n.pod(p)).arrivesAs(n.c.management(t, node.Name)...)
		}
	}
	for _, way := range []struct {
		pod  string
		node int
		port int
	}{{"web-1", 0, 30081}, {"web-3", 2, 30083}} {
		for _, ip := range n.c.nodes[way.node].IPs {
			out, err := fetch(t.Context(), clientIn(n.c.hosts[0].Name), url(ip, way.port, "/hostname"))
			if err != nil || out != way.pod {
				t.Errorf("host outside to hostPort of selected pod %s at %s: answer %q, %v", way.pod, ip, out, err)
			}
		}
	}
}

// columns: kubectl get shows all addresses, all nodes and readiness, and kubectl wait works.
func columns(t *testing.T, c *cluster, e egressIP) {
	c.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5s", "egressip/"+e.name)
	o, err := e.get()
	if err != nil {
		t.Fatal(err)
	}
	row := strings.Fields(strings.Split(c.kubectl(t, "get", "egressip", e.name), "\n")[1])
	var nodes, ips []string
	for _, i := range o.Status.Items {
		nodes, ips = append(nodes, i.Node), append(ips, i.EgressIP)
	}
	for _, want := range []string{e.name, `["` + strings.Join(o.Spec.EgressIPs, `","`) + `"]`, strings.Join(nodes, ","),
		strings.Join(ips, ","), "True", v1.ReasonHeld} {
		if !slices.Contains(row, want) {
			t.Errorf("kubectl get egressip shows %q, want %q in it", row, want)
		}
	}
}

func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.tryKubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *cluster) tryKubectl(ctx context.Context, args ...string) (string, error) {
	out, err := c.Kubectl(ctx, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return string(out), err
}

// TestEgressIPDualStack has an address of each family in one object.
func TestEgressIPDualStack(t *testing.T) {
	c := theCluster(t)
	if len(c.nodes[0].IPs) < 2 {
		t.Skip("needs EGRET_E2E_FAMILY=dual")
	}
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	n.runs(pod{name: "a", node: c.nodes[0]}, pod{name: "b", node: c.nodes[1]}, pod{name: "c", node: c.nodes[2]})
	e := c.egressIP(t, "dual", c.number(35), n.itself(), metav1.LabelSelector{})
	e.ready()
	for _, p := range []string{"a", "b", "c"} {
		for h := range c.hosts {
			n.from(p).to(c.outside(h)).arrivesAs(c.number(35)...)
		}
	}
	preferTwoNodes(t, c, e, n)
}

// preferTwoNodes: the addresses of the two families are on two nodes, and on one when there is only one.
func preferTwoNodes(t *testing.T, c *cluster, e egressIP, n *namespace) {
	t.Helper()
	ips := c.number(35)
	if where := e.ready(); where[ips[0].String()] == where[ips[1].String()] {
		t.Errorf("both families on one node of two: %v", where)
	}
	c.unlabelEgress(t, c.nodes[1])
	e.readyOn(c.nodes[2])
	for _, p := range []string{"a", "b", "c"} {
		n.from(p).to(c.outside(0)).soonArrivesAs(ips...)
	}
}

// TestOneFamilyOnly: an EgressIP of one family leaves the other alone.
func TestOneFamilyOnly(t *testing.T) {
	c := theCluster(t)
	if len(c.nodes[0].IPs) < 2 {
		t.Skip("needs EGRET_E2E_FAMILY=dual")
	}
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]})
	v6 := c.number(36)[1]
	c.egressIP(t, "ipv6-only", []netip.Addr{v6}, n.itself(), metav1.LabelSelector{}).ready()
	n.from("a").to(c.outside(0)).arrivesAs(c.nodes[0].IPs[0], v6)
}
