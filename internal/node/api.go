package node

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	apiv1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/world"
)

// API is what the agent writes to Kubernetes: annotations of its own Node and pods, its own EgressNode and its Lease.
type API struct {
	Node, BootID, Version string
	Clients               *kube.Clients
	// Observe takes what a request returned, so that it is in the world before the watch brings it.
	Observe func(obj any) error
	// BeginRead is kube.Source's.
	BeginRead func(k kube.Kind, key string) (check func(version string) error)
	// ReadNow is kube.Source's.
	ReadNow func(ctx context.Context, k kube.Kind, namespace string) error
}

const fieldManager = "egret-node"

// AnnotateNode sets annotations of this node, and returns the Node's version then. Their entries of other networks
// stay: the Node is read first, and must be unchanged when it is written.
func (a *API) AnnotateNode(ctx context.Context, annotations map[string]string) (version string, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n := &corev1.Node{}
		if err := a.Clients.Core.Get().Resource("nodes").Name(a.Node).Do(ctx).Into(n); err != nil {
			return fmt.Errorf("read node %s: %w", a.Node, err)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": n.ResourceVersion, "annotations": kube.MergeNetworks(n.Annotations, annotations),
		}})
		if err != nil {
			return err
		}
		version, err = a.patchNode(ctx, patch)
		return err
	})
	return version, err
}

// Cordon sets the annotation egress-cordon of this node, if the Node is still as it was at that version.
func (a *API) Cordon(ctx context.Context, version, value string) error {
	return a.patchCordon(ctx, version, value)
}

// Uncordon removes the annotation egress-cordon of this node, if the Node is still as it was at that version.
func (a *API) Uncordon(ctx context.Context, version string) error {
	return a.patchCordon(ctx, version, nil)
}

func (a *API) patchCordon(ctx context.Context, version string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": version, "annotations": map[string]any{apiv1.AnnotationEgressCordon: value},
	}})
	if err != nil {
		return err
	}
	_, err = a.patchNode(ctx, patch)
	return err
}

func (a *API) patchNode(ctx context.Context, patch []byte) (version string, err error) {
	n := &corev1.Node{}
	err = a.Clients.Core.Patch(types.MergePatchType).Resource("nodes").Name(a.Node).
		VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager},
			metav1.ParameterCodec).Body(patch).Do(ctx).Into(n)
	if err != nil {
		return "", fmt.Errorf("annotate node %s: %w", a.Node, err)
	}
	return n.ResourceVersion, a.Observe(n)
}

// AnnotatePod sets annotations of a pod, if it is still the one that has that UID for the kubelet: the API server
// refuses to change the UID of another pod of that name. A nil value removes the key.
func (a *API) AnnotatePod(ctx context.Context, namespace, name, uid string, annotations map[string]any) error {
	err := a.patchPod(ctx, namespace, name, uid, annotations)
	if !apierrors.IsInvalid(err) { // the answer to a patch with another UID
		return err
	}
	mirror, e := a.Pod(ctx, namespace, name)
	if e != nil || kube.Pod(mirror).UID != uid {
		return err
	}
	return a.patchPod(ctx, namespace, name, string(mirror.UID), annotations)
}

func (a *API) patchPod(ctx context.Context, namespace, name, uid string, annotations map[string]any) error {
	p := &corev1.Pod{}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations, "uid": uid}})
	if err == nil {
		err = a.Clients.Core.Patch(types.MergePatchType).Namespace(namespace).Resource("pods").Name(name).
			VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager},
				metav1.ParameterCodec).Body(patch).Do(ctx).Into(p)
	}
	if err != nil {
		return fmt.Errorf("annotate pod %s/%s: %w", namespace, name, err)
	}
	return a.Observe(p)
}

// Pod asks the API server for a pod.
func (a *API) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	err := a.Clients.Core.Get().Namespace(namespace).Resource("pods").Name(name).Do(ctx).Into(p)
	return p, err
}

// Namespace has the world take in a namespace as it is now: a read without a resourceVersion is consistent.
func (a *API) Namespace(ctx context.Context, name string) error {
	n, check := &corev1.Namespace{}, a.BeginRead(kube.Namespaces(), name)
	err := a.Clients.Core.Get().Resource("namespaces").Name(name).Do(ctx).Into(n)
	if err == nil {
		err = check(n.ResourceVersion)
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}
	return a.Observe(n)
}

// EgressIP asks the API server for an EgressIP and puts it into the world; nil without an error if it does not exist.
func (a *API) EgressIP(ctx context.Context, name string) (*world.EgressIP, error) {
	o := &apiv1.EgressIP{}
	err := a.Clients.EgressIP.Get().Resource("egressips").Name(name).Do(ctx).Into(o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read EgressIP %s: %w", name, err)
	}
	return kube.EgressIP(o), a.Observe(o)
}

// Report writes this node's EgressNode, whole, in one request, and returns its version: a merge patch, which costs the
// API server less than an apply, or the first time a create. The Node, by its UID, owns it, so that it goes with the
// Node.
func (a *API) Report(ctx context.Context, r Report) (version string, err error) {
	o, stored := r.egressNode(a.Node, a.BootID, a.Version), &egretv1.EgressNode{}
	patch, err := wholePatch(o)
	if err != nil {
		return "", err
	}
	err = a.Clients.Egret.Patch(types.MergePatchType).Resource("egressnodes").Name(a.Node).
		VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager},
			metav1.ParameterCodec).Body(patch).Do(ctx).Into(stored)
	if apierrors.IsNotFound(err) {
		err = a.Clients.Egret.Post().Resource("egressnodes").
			VersionedParams(&metav1.CreateOptions{FieldManager: fieldManager},
				metav1.ParameterCodec).Body(o).Do(ctx).Into(stored)
	}
	if err != nil {
		return "", fmt.Errorf("write EgressNode %s: %w", a.Node, err)
	}
	return stored.ResourceVersion, a.Observe(stored)
}

// RenewLease is kube.RenewAgentLease of this agent's Lease.
func (a *API) RenewLease(ctx context.Context, owner string, lasts time.Duration, last string) (string, error) {
	short, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return a.Clients.RenewAgentLease(short, a.Node, owner, lasts, time.Now(), last)
}

// wholePatch also removes what the object no longer says: a merge patch leaves alone what it does not name (RFC 7386).
func wholePatch(o *egretv1.EgressNode) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"ownerReferences": o.OwnerReferences},
		"status": map[string]any{
			"formatVersion": o.Status.FormatVersion, "bootID": o.Status.BootID, "agentVersion": o.Status.AgentVersion,
			"holding": o.Status.Holding, "holdingCount": o.Status.HoldingCount, "heldIPs": o.Status.HeldIPs,
			"problems":      o.Status.Problems,
			"heldAddresses": o.Status.HeldAddresses, "objectProblems": o.Status.ObjectProblems,
			"conflicts": o.Status.Conflicts, "steers": o.Status.Steers, "objectSteers": o.Status.ObjectSteers,
			"agentPort": o.Status.AgentPort,
		},
	})
}

func postEvent(ctx context.Context, clients *kube.Clients, node string, e kube.Event) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return clients.PostEvent(ctx, "egret-node", node, kube.NewPosting(e, time.Now()))
}

// ofThisNode warns about a Node. As the kubelet's, it has the name for a UID, by which kubectl describe finds it.
func ofThisNode(node, reason, action, text string) kube.Event {
	return kube.Event{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)},
		Warning:   true, Reason: reason, Action: action, Note: text,
	}
}

// podAnnotations are the annotations of a port's pod by key; nil removes one.
func podAnnotations(p cniserver.PodPort, nets cniserver.PodNetworks) (map[string]any, error) {
	out, status := map[string]any{apiv1.AnnotationPodNetworks: nil}, p.NetworkStatus()
	if status != nil {
		out[apiv1.AnnotationNetworkStatus] = nil
	}
	if nets == nil {
		return out, nil
	}
	text, err := json.Marshal(nets)
	if err != nil {
		return nil, fmt.Errorf("encode the pod's addresses: %w", err)
	}
	out[apiv1.AnnotationPodNetworks] = string(text)
	if status == nil {
		return out, nil
	}
	if text, err = json.Marshal(status); err != nil {
		return nil, fmt.Errorf("encode the pod's interfaces: %w", err)
	}
	out[apiv1.AnnotationNetworkStatus] = string(text)
	return out, nil
}
