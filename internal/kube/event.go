package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NoteLimit is how long the API lets an Event's note be.
const NoteLimit = 1024

// Event is something to tell people about an object.
type Event struct {
	Regarding corev1.ObjectReference
	Warning   bool
	Reason    string // "Moved"
	Action    string // "Assign"
	Note      string
}

// Posting is an Event with its time and a name in the API: posted twice, it is one.
type Posting struct {
	Event
	Name string
	Time time.Time
}

// NewPosting gives an Event its name.
func NewPosting(e Event, now time.Time) Posting {
	suffix := "-" + rand.String(10)
	base := strings.TrimRight(cutToLimit(e.Regarding.Name, validation.DNS1123SubdomainMaxLength-len(suffix)), "-.")
	return Posting{Event: e, Name: base + suffix, Time: now}
}

func cutToLimit(s string, limit int) string { return s[:min(len(s), limit)] }

// PostEvent creates an Event, unless it was created before. Reporter is the program ("egret-controller"), instance the
// node it runs on.
func (c *Clients) PostEvent(ctx context.Context, reporter, instance string, p Posting) error {
	o := eventObject(reporter, instance, p)
	err := c.Events.Post().Namespace(o.Namespace).Resource("events").Body(o).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("event %s on %s %s: %w", p.Reason, p.Regarding.Kind, p.Regarding.Name, err)
	}
	return nil
}

// Passes says whether what failed may succeed later: the API server was not reached, or could not answer; it did not
// refuse.
func Passes(err error) bool {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return true
	}
	switch code := refused.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return code >= http.StatusInternalServerError
	}
}

func eventObject(reporter, instance string, e Posting) *eventsv1.Event {
	namespace := e.Regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: e.Name, Namespace: namespace},
		EventTime:  metav1.NewMicroTime(e.Time), ReportingController: reporter, ReportingInstance: instance,
		Regarding: e.Regarding, Type: kind, Reason: e.Reason, Action: e.Action,
		Note: cutWithEllipsis(e.Note, NoteLimit),
	}
}

func cutWithEllipsis(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "..."
	return strings.ToValidUTF8(s[:limit-len(more)], "") + more // not a part of a rune
}
