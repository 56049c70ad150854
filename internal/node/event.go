package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodEvent writes a warning about a pod.
func (a *API) PodEvent(ctx context.Context, namespace, name, uid, reason, message string) error {
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + ".", Namespace: namespace},
		EventTime:  metav1.NewMicroTime(time.Now()),
		Reason:     reason, Note: message, Type: corev1.EventTypeWarning, Action: "Attach",
		ReportingController: "egret.k8s.ovn.org/node", ReportingInstance: a.Node,
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(uid)},
	}
	if err := a.Clients.Events.Post().Namespace(namespace).Resource("events").Body(e).Do(ctx).Error(); err != nil {
		return fmt.Errorf("write Event %s of pod %s/%s: %w", reason, namespace, name, err)
	}
	return nil
}
