package node

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
)

// API is what the agent writes to Kubernetes: its own Node's annotations, its own EgressNode, and annotations of its own pods.
type API struct {
	Node, BootID, Version string
	Core                  kubernetes.Interface
	Dynamic               dynamic.Interface
}

const fieldManager = "egret-node"

var egressNodes = schema.GroupVersionResource{Group: "egret.k8s.ovn.org", Version: "v1", Resource: "egressnodes"}

// AnnotateNode sets annotations of this node.
func (a *API) AnnotateNode(ctx context.Context, annotations map[string]string) error {
	patch, err := annotationPatch(annotations, "")
	if err != nil {
		return err
	}
	_, err = a.Core.CoreV1().Nodes().Patch(ctx, a.Node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

// AnnotatePod sets annotations of a pod, if it is still the one with that UID.
func (a *API) AnnotatePod(ctx context.Context, namespace, name, uid string, annotations map[string]string) error {
	patch, err := annotationPatch(annotations, uid)
	if err != nil {
		return err
	}
	_, err = a.Core.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

// annotationPatch names the UID, if any: the API server refuses to change the UID of another object of that name.
func annotationPatch(annotations map[string]string, uid string) ([]byte, error) {
	meta := map[string]any{"annotations": annotations}
	if uid != "" {
		meta["uid"] = uid
	}
	return json.Marshal(map[string]any{"metadata": meta})
}

// Report writes this node's EgressNode, whole, in one request. The Node owns it, so that it goes with the Node.
func (a *API) Report(ctx context.Context, r Report) error {
	node, err := a.Core.CoreV1().Nodes().Get(ctx, a.Node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("get node %s, which is to own its EgressNode: %w", a.Node, err)
	}
	body, err := json.Marshal(a.egressNode(r, node.UID))
	if err != nil {
		return err
	}
	force := true
	_, err = a.Dynamic.Resource(egressNodes).Patch(ctx, a.Node, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	return err
}

func (a *API) egressNode(r Report, owner types.UID) *egretv1.EgressNode {
	e := &egretv1.EgressNode{
		TypeMeta: metav1.TypeMeta{APIVersion: "egret.k8s.ovn.org/v1", Kind: "EgressNode"},
		ObjectMeta: metav1.ObjectMeta{Name: a.Node, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: a.Node, UID: owner},
		}},
		Status: egretv1.EgressNodeStatus{
			FormatVersion: egretv1.FormatVersion, BootID: a.BootID, AgentVersion: a.Version,
			HoldingCount: int32(len(r.Holding)), Problems: r.Problems,
		},
	}
	for _, h := range r.Holding {
		e.Status.Holding = append(e.Status.Holding, egretv1.Held{EgressIP: h.EgressIP, IP: h.IP.String()})
	}
	return e
}
