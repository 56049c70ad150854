package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noteLimit is how long the API lets an Event's note be.
const noteLimit = 1024

// Event is something to tell people about an object.
type Event struct {
	Regarding corev1.ObjectReference
	Warning   bool
	Reason    string // "Moved"
	Action    string // "Assign"
	Note      string
}

// PostEvent creates an Event. Reporter is the program ("egret-controller"), instance the node it runs on.
func (c *Clients) PostEvent(ctx context.Context, reporter, instance string, e Event) error {
	o := eventObject(reporter, instance, e, time.Now())
	if err := c.Events.Post().Namespace(o.Namespace).Resource("events").Body(o).Do(ctx).Error(); err != nil {
		return fmt.Errorf("event %s on %s %s: %w", e.Reason, e.Regarding.Kind, e.Regarding.Name, err)
	}
	return nil
}

func eventObject(reporter, instance string, e Event, now time.Time) *eventsv1.Event {
	namespace := e.Regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	return &eventsv1.Event{
		// A dash, because a prefix that ends in a dot is no name to the API server.
		ObjectMeta: metav1.ObjectMeta{GenerateName: e.Regarding.Name + "-", Namespace: namespace},
		EventTime:  metav1.NewMicroTime(now), ReportingController: reporter, ReportingInstance: instance,
		Regarding: e.Regarding, Type: kind, Reason: e.Reason, Action: e.Action, Note: shortened(e.Note, noteLimit),
	}
}

func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "..."
	return strings.ToValidUTF8(s[:limit-len(more)], "") + more // not a part of a rune
}
