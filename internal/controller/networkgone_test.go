package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestSubnetsOfGoneNetworks: a Node has subnets of a network that went while no controller led. The next leader removes
// them, and leaves the entry of another plugin.
func TestSubnetsOfGoneNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		n := aNode("n1", 2)
		n.Annotations[v1.AnnotationNodeSubnets] =
			`{"default":["10.244.0.0/24"],"other":["10.8.0.0/24"],"shop_gone":["10.7.0.0/24"]}`
		a.putNode(n)
		start(t, a)
		subnets := func() string { return a.annotation("n1", v1.AnnotationNodeSubnets) }
		eventually(t, "id", "2", func() string { return a.annotation("n1", v1.AnnotationNodeID) })
		time.Sleep(9 * time.Minute)
		if have := subnets(); have != n.Annotations[v1.AnnotationNodeSubnets] {
			t.Errorf("too early: %s", have)
		}
		time.Sleep(time.Minute)
		eventually(t, "subnets", `{"default":["10.244.0.0/24"],"other":["10.8.0.0/24"]}`, subnets)
	})
}
