package e2e

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestStaticPod: a pod that its kubelet made has another UID there than its mirror has in Kubernetes. It gets its
// network, and an egress IP, like any other.
func TestStaticPod(t *testing.T) {
	c := theCluster(t)
	c.labelEgress(t, c.nodes[0])
	n := c.namespace(t, nil)
	ips := c.number(54)
	c.egressIP(t, n.name, ips, n.itself(), metav1.LabelSelector{})
	node := c.nodes[1]
	o := n.object(pod{name: "static", node: node})
	o.TypeMeta, o.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, n.name
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	file := sandbox.StaticPods + "/" + n.name + ".json"
	if _, err := c.feed(t.Context(), node.Name, text, "tee", file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.feed(context.Background(), node.Name, nil, "rm", file); err != nil {
			t.Error(err)
		}
	})
	mirror := o.Name + "-" + node.Name
	within(t, podsTimeout, func() error { return n.learn(mirror) })
	n.from(mirror).to(c.outside(0)).soonArrivesAs(ips...)
}
