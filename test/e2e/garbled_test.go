package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// rewrittenIn is how soon an agent puts its own annotations right: it does so once a second at most, and is read over
// the API on busy cores.
const rewrittenIn = 3 * time.Second

// TestGarbledAnnotations: what a node's agent owns is garbled by hand, one annotation after the other, and is written
// anew. The egress IP stays on that node, and selected pods go on leaving by it and in no other way.
func TestGarbledAnnotations(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	holder := c.nodes[1]
	c.labelEgress(t, holder)
	ips := c.number(163)
	e := c.egressIP(t, "garbled", ips, n.itself(), metav1.LabelSelector{})
	e.readyOn(holder)
	seen := c.capture(t)
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: holder, sends: true})
	e.ready()
	seen.flowing(c, n, []string{"a", "b"}, time.Now(), soon)
	for _, key := range []string{
		v1.AnnotationZoneName, v1.AnnotationNodeChassisID, v1.AnnotationNodePrimaryIfaddr, v1.AnnotationHostCIDRs,
		v1.AnnotationL3GatewayConfig,
		v1.AnnotationNodeMgmtPortMACAddresses,
	} {
		begin := time.Now()
		took := c.garbles(t, holder.Name, key)
		e.readyOn(holder)
		n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
		t.Logf("%s: written anew after %s; %s", key, took.Round(time.Millisecond), seen.lost(begin))
	}
	seen.flowing(c, n, []string{"a", "b"}, time.Now(), soon)
	seen.onlyFrom(n, ips)
}

// garbles puts garbage into an annotation of a node and waits until it is as it was.
func (c *cluster) garbles(t *testing.T, node, key string) time.Duration {
	t.Helper()
	was := c.node(t, node).Annotations[key]
	garbage, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{key: "garbage\n"}}})
	must(t, err)
	c.patchNode(t, node, string(garbage))
	return within(t, rewrittenIn, func() error {
		if now := c.node(t, node).Annotations[key]; now != was {
			return fmt.Errorf("annotation %s of node %s is %q, want %q", key, node, now, was)
		}
		return nil
	})
}
