package controller

import (
	"context"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// Writer is the API server, as far as the controller writes. Its methods are called concurrently, for one object at a time; each
// returns the object's new resourceVersion.
type Writer interface {
	// PatchNode merges annotations into a node, if it is still at version; it removes those that are empty.
	PatchNode(ctx context.Context, name, version string, annotations map[string]string) (string, error)
	// PatchEgressIPStatus makes the status say what e says, if the object is still at e.Version.
	PatchEgressIPStatus(ctx context.Context, e *world.EgressIP) (string, error)
	// ApplyServiceConditions makes the conditions of a Service that are this controller's these, and no others.
	ApplyServiceConditions(ctx context.Context, s *world.Service, conditions []world.Condition) (string, error)
	// PostEvent creates an Event.
	PostEvent(ctx context.Context, e kube.Event) error
}

// APIWriter writes to a real API server, and signs Events.
type APIWriter struct {
	*kube.Clients
	Node string
}

// PostEvent creates an Event of this controller.
func (w APIWriter) PostEvent(ctx context.Context, e kube.Event) error {
	return w.Clients.PostEvent(ctx, "egret-controller", w.Node, e)
}
