package controller

import (
	"context"

	"github.com/egret-net/egret/internal/kube"
)

// Writer is the API server, as far as the controller writes. Its methods are called concurrently, for one object at a
// time.
type Writer interface {
	// Patch writes an object, and returns its new resourceVersion.
	Patch(context.Context, kube.Patch) (string, error)
	// PostEvent creates an Event, unless it was created before.
	PostEvent(ctx context.Context, p kube.Posting) error
}

// APIWriter writes to a real API server, and signs Events.
type APIWriter struct {
	*kube.Clients
	Node string
}

// PostEvent creates an Event of this controller.
func (w APIWriter) PostEvent(ctx context.Context, p kube.Posting) error {
	return w.Clients.PostEvent(ctx, "egret-controller", w.Node, p)
}
