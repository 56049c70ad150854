package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

// rewrittenIn is how soon an agent puts its own words right: it does so once a second at most, and is read over the API
// on busy cores.
const rewrittenIn = 3 * time.Second

// TestGarbledAnnotations: what a node's agent owns is garbled by hand, one annotation after the other, and is written
// anew. So is its report, which somebody writes over with a previous state, or deletes. The egress IP stays on that
// node, and selected pods go on leaving by it and in no other way.
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
	c.losesReport(t, holder.Name)
	e.readyOn(holder)
	n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
	seen.flowing(c, n, []string{"a", "b"}, time.Now(), soon)
	seen.onlyFrom(n, ips)
}

// losesReport patches, and then deletes, a node's EgressNode, and waits each time until it says again what is held.
func (c *cluster) losesReport(t *testing.T, node string) {
	t.Helper()
	report := func() (o egretv1.EgressNode, err error) {
		err = c.kube.Egret.Get().Resource("egressnodes").Name(node).Do(t.Context()).Into(&o)
		return o, err
	}
	was, err := report()
	must(t, err)
	before := []byte(`{"status":{"holding":null,"holdingCount":0,"heldIPs":"","heldAddresses":null,"steers":null}}`)
	for name, write := range map[string]*rest.Request{
		"patched": c.kube.Egret.Patch(mergePatch).Body(before), "deleted": c.kube.Egret.Delete(),
	} {
		must(t, write.Resource("egressnodes").Name(node).Do(t.Context()).Error())
		took := within(t, rewrittenIn, func() error {
			now, err := report()
			if err == nil && (now.Status.HeldIPs != was.Status.HeldIPs || now.Status.HeldIPs == "") {
				err = fmt.Errorf("it says that %q is held, want %q", now.Status.HeldIPs, was.Status.HeldIPs)
			}
			return err
		})
		t.Logf("EgressNode %s: written again after %s", name, took.Round(time.Millisecond))
	}
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
