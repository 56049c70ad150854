package kube_test

import (
	"slices"
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
)

// TestGarbledAnnotation: other nodes go on with what they knew of a node while an annotation of its agent cannot be
// read; a Node that was made anew has no before.
func TestGarbledAnnotation(t *testing.T) {
	for _, key := range []string{v1.AnnotationNodeChassisID, v1.AnnotationNodePrimaryIfaddr, v1.AnnotationHostCIDRs,
		v1.AnnotationL3GatewayConfig} {
		w := honest().seenFrom("n1", honest())
		o := honest().object()
		w.SetNode(kube.Node(o))
		before := compile.Full(w, all.Features()).Lines()
		o.Annotations[key] = "garbage\n"
		w.SetNode(kube.Node(o))
		if after := compile.Full(w, all.Features()).Lines(); !slices.Equal(after, before) {
			t.Errorf("%s: n1 changes what it has of n3", key)
		}
		if len(w.Node("n3").Problems) != 1 {
			t.Errorf("%s: problems %q", key, w.Node("n3").Problems)
		}
		o.UID = "another"
		w.SetNode(kube.Node(o))
		if after := compile.Full(w, all.Features()).Lines(); key == v1.AnnotationNodePrimaryIfaddr &&
			slices.Equal(after, before) {
			t.Errorf("%s: what was known of another Node goes on", key)
		}
	}
}
