package removal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

// assigned is an EgressIP or an EgressService, as far as it matters here.
type assigned struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Items      []struct{ Node string }
		Conditions []metav1.Condition
	}
}

// sayUnserved ends condition Ready of the objects of a kind that have an address on this node: no controller may be
// left to do it. The assignment stays for the next installation. A controller that runs writes its own decision: the
// EgressNode is gone before, and a write from an earlier version of the object is refused.
func sayUnserved(ctx context.Context, c *kube.Clients, plural, node string) error {
	body, err := c.EgressIP.Get().Resource(plural).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil
	}
	var list struct{ Items []assigned }
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	errs := []error{err}
	for _, o := range list.Items {
		names := slices.ContainsFunc(o.Status.Items, func(i struct{ Node string }) bool {
			return i.Node == node || i.Node == v1.EgressServiceHostAll
		})
		if names && meta.IsStatusConditionTrue(o.Status.Conditions, v1.ConditionReady) {
			errs = append(errs, endReady(ctx, c, plural, node, o))
		}
	}
	return errors.Join(errs...)
}

func endReady(ctx context.Context, c *kube.Clients, plural, node string, o assigned) error {
	meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: v1.ConditionReady, Reason: v1.ReasonRemoved,
		Status: metav1.ConditionFalse, ObservedGeneration: o.Generation, Message: fmt.Sprintf("Egret was removed from "+
			"node %s, which has an address of this object. Delete the object, or install Egret again.", node)})
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": o.ResourceVersion},
		"status":   map[string]any{"conditions": o.Status.Conditions}})
	if err != nil {
		return err
	}
	err = c.EgressIP.Patch(types.MergePatchType).NamespaceIfScoped(o.Namespace, o.Namespace != "").Resource(plural).
		Name(o.Name).SubResource("status").Body(patch).Do(ctx).Error()
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return nil // an administrator may write no status, for a policy keeps that to the controller
	}
	return err
}
