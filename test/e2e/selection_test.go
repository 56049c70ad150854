package e2e

import (
	"net/netip"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLabels: what is selected follows the labels of pods and namespaces at once. A pod in its host's network, selected
// or not, leaves as its node, and Ready does not wait for that node.
func TestLabels(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, map[string]string{"team": "blue"})
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]}, pod{name: "b", node: c.nodes[1], labels: web}, pod{name: "host",
		node: c.nodes[2], labels: web, inHost: true})
	ips := c.number(37)
	c.egressIP(t, "labels", ips, selects(map[string]string{"team": "blue"}), selects(web)).ready()
	n.from("a").to(c.outside(0)).arrivesAs(c.nodes[0].IPs...)
	n.from("b").to(c.outside(0)).arrivesAs(ips...)
	n.from("host").to(c.outside(0)).arrivesAs(c.nodes[2].IPs...)

	n.label("a", web)
	n.from("a").to(c.outside(0)).formerly(c.nodes[0].IPs...).soonArrivesAs(ips...)
	n.label("b", map[string]string{"app": absent})
	n.from("b").to(c.outside(0)).formerly(ips...).soonArrivesAs(c.nodes[1].IPs...)
	n.labelSelf(map[string]string{"team": "red"})
	n.from("a").to(c.outside(0)).formerly(ips...).soonArrivesAs(c.nodes[0].IPs...)
	n.labelSelf(map[string]string{"team": "blue"})
	n.from("a").to(c.outside(0)).formerly(c.nodes[0].IPs...).soonArrivesAs(ips...)
}

// TestRelabelled: pods that send all the time come under another EgressIP and back, by their own labels and by their
// namespace's. They leave with either's address and with no other: at no moment does neither select them.
func TestRelabelled(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	of := func(color string) map[string]string { return map[string]string{"egret-e2e-color": color} }
	for i, x := range []struct {
		name    string
		selects func(n *namespace, color string) (namespaces, pods metav1.LabelSelector)
		paint   func(n *namespace, color string)
	}{
		{"pods", func(n *namespace, color string) (_, _ metav1.LabelSelector) { return n.itself(), selects(of(color)) },
			func(n *namespace, color string) {
				for _, p := range secondPods {
					n.label(p, of(color))
				}
			}},
		{"namespace", func(_ *namespace, color string) (_, _ metav1.LabelSelector) {
			return selects(of(color)), metav1.LabelSelector{}
		},
			func(n *namespace, color string) { n.labelSelf(of(color)) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := c.namespace(t, of("blue"))
			ips := map[string][]netip.Addr{"blue": c.number(93 + 2*i), "green": c.number(94 + 2*i)}
			for color := range ips {
				namespaces, pods := x.selects(n, color)
				c.egressIP(t, n.name+"-"+color, ips[color], namespaces, pods).ready()
			}
			for j, p := range secondPods {
				n.runs(pod{name: p, node: c.nodes[j], labels: of("blue"), sends: true})
			}
			seen := c.capture(t)
			for _, color := range []string{"blue", "green", "blue", "green", "blue", "green"} {
				x.paint(n, color)
				for _, p := range secondPods {
					n.from(p).to(c.outside(0)).formerly(slices.Concat(ips["blue"],
						ips["green"])...).soonArrivesAs(ips[color]...)
				}
			}
			seen.eachItsOwn(n)
		})
	}
}

// TestSelectors has one pod and namespace for every operator; NotIn and DoesNotExist also match what has no labels at
// all.
func TestSelectors(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, map[string]string{"tier": "one"})
	c.labelEgress(t, c.nodes[1])
	n.runs(
		pod{name: "web", node: c.nodes[0], labels: web}, pod{name: "db", node: c.nodes[0],
			labels: map[string]string{"app": "db"}},
		pod{name: "bare", node: c.nodes[0]},
	)
	ips := c.number(38)
	for _, s := range []struct {
		name     string
		pods     metav1.LabelSelector
		selected []string
	}{
		{"in", selectsWhere("app", metav1.LabelSelectorOpIn, "web", "cache"), []string{"web"}},
		{"notin", selectsWhere("app", metav1.LabelSelectorOpNotIn, "web"), []string{"db", "bare"}},
		{"exists", selectsWhere("app", metav1.LabelSelectorOpExists), []string{"web", "db"}},
		{"doesnotexist", selectsWhere("app", metav1.LabelSelectorOpDoesNotExist), []string{"bare"}},
		{"everything", metav1.LabelSelector{}, []string{"web", "db", "bare"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			in := *n
			in.t = t
			e := c.egressIP(t, "selectors-"+s.name, ips, selects(map[string]string{"tier": "one"}), s.pods)
			e.ready()
			selected := map[string]bool{}
			for _, p := range s.selected {
				selected[p] = true
			}
			for _, p := range []string{"web", "db", "bare"} {
				if selected[p] {
					in.from(p).to(c.outside(0)).soonArrivesAs(ips...)
				} else { // the EgressIP before may have selected it
					in.from(p).to(c.outside(0)).formerly(ips...).soonArrivesAs(c.nodes[0].IPs...)
				}
			}
		})
	}
	t.Run("namespace-doesnotexist", func(t *testing.T) {
		in := *n
		in.t = t
		c.egressIP(t, "selectors-namespace", ips, selectsWhere("egret-e2e-none", metav1.LabelSelectorOpDoesNotExist),
			selects(web)).ready()
		in.from("web").to(c.outside(0)).soonArrivesAs(ips...)
	})
}
