package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestNamesTheNodeThatCannot: of two addresses and two egress nodes, one of which is cordoned, one address has no node:
// the condition says which node is why, and what is to be done is enough.
func TestNamesTheNodeThatCannot(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	ips := append(c.number(54)[:1], c.number(55)[0])
	e := c.egressIP(t, "names-the-node", ips, n.itself(), metav1.LabelSelector{})
	e.ready()
	n.runs(pod{name: "a", node: c.nodes[0]})
	c.cordon(t, c.nodes[2].Name, `"maintenance"`)
	t.Cleanup(func() { c.cordon(t, c.nodes[2].Name, "null") })
	want := fmt.Sprintf("others cannot (%s NodeCordoned): mend one of these", c.nodes[2].Name)
	within(t, soon, func() error {
		o, err := e.get()
		if err != nil {
			return err
		}
		a := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionAssigned)
		if a == nil || !strings.Contains(a.Message, want) {
			return fmt.Errorf("condition %+v, want %q in it", a, want)
		}
		return nil
	})
	n.from("a").to(family4or6(c.outside(0), ips[0])).soonArrivesAs(ips...)
	c.cordon(t, c.nodes[2].Name, "null")
	e.ready()
	n.from("a").to(family4or6(c.outside(0), ips[0])).soonArrivesAs(ips...)
}
