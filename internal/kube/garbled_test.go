package kube_test

import (
	"slices"
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
)

// TestGarbledAnnotation: a node and the others go on with what they knew of the node while an annotation of it cannot
// be read. Another Node of its name has no previous values.
func TestGarbledAnnotation(t *testing.T) {
	const half = `{"default":["10.244.3.0/24","x"]}`
	for _, c := range []struct{ key, text string }{{v1.AnnotationNodeChassisID, "garbage\n"},
		{v1.AnnotationNodePrimaryIfaddr, "garbage\n"}, {v1.AnnotationHostCIDRs, "garbage\n"},
		{v1.AnnotationL3GatewayConfig, "garbage\n"}, {v1.AnnotationNodeID, "garbage\n"},
		{v1.AnnotationNodeSubnets, "garbage\n"}, {v1.AnnotationNodeSubnets, half}} {
		for _, self := range []string{"n1", "n3"} {
			w := honest().seenFrom(self, honest())
			o := honest().object()
			w.SetNode(kube.Node(o))
			before := compile.Full(w, all.Features()).Lines()
			o.Annotations[c.key] = c.text
			w.SetNode(kube.Node(o))
			if after := compile.Full(w, all.Features()).Lines(); !slices.Equal(after, before) {
				t.Errorf("%s: %s changes what it has of n3", c.key, self)
			}
			if len(w.Node("n3").Problems) != 1 {
				t.Errorf("%s: problems %q", c.key, w.Node("n3").Problems)
			}
			o.UID = "another"
			w.SetNode(kube.Node(o))
			shows := self == "n1" && c.key == v1.AnnotationNodePrimaryIfaddr || c.key == v1.AnnotationNodeID ||
				c.key == v1.AnnotationNodeSubnets
			if after := compile.Full(w, all.Features()).Lines(); shows && slices.Equal(after, before) {
				t.Errorf("%s: %s goes on with what was known of another Node", c.key, self)
			}
		}
	}
}
