package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Patch is one write of an object of the API.
type Patch struct {
	Plural, Namespace, Name string
	Subresource             string // "status", or ""
	Type                    types.PatchType
	Body                    []byte
	// Created: Body is a new object. Deleted: the object is deleted, if it is still that one.
	Created bool
	Deleted *metav1.Preconditions
	Client  func(*Clients) rest.Interface // of the kind's group
}

// Patch sends a write. It returns the object's new version; "" if it was deleted.
func (c *Clients) Patch(ctx context.Context, p Patch) (string, error) {
	version, err := c.sendWrite(ctx, p)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", p.Plural, keyOf(p.Namespace, p.Name), err)
	}
	return version, nil
}

func (c *Clients) sendWrite(ctx context.Context, p Patch) (version string, err error) {
	at := func(r *rest.Request) *rest.Request {
		return r.NamespaceIfScoped(p.Namespace, p.Namespace != "").Resource(p.Plural)
	}
	switch client := p.Client(c); {
	case p.Created:
		return versionAfter(ctx, at(client.Post()).Body(p.Body))
	case p.Deleted != nil:
		options := &metav1.DeleteOptions{Preconditions: p.Deleted}
		return "", at(client.Delete()).Name(p.Name).Body(options).Do(ctx).Error()
	case p.Subresource != "":
		return versionAfter(ctx, at(client.Patch(p.Type)).Name(p.Name).SubResource(p.Subresource).Body(p.Body))
	default:
		return versionAfter(ctx, at(client.Patch(p.Type)).Name(p.Name).Body(p.Body))
	}
}

// metadata is what a merge patch says of an object's metadata. A resourceVersion makes the API server refuse it
// (conflict) unless the object is still at that version.
type metadata struct {
	ResourceVersion string         `json:"resourceVersion,omitempty"`
	Annotations     map[string]any `json:"annotations,omitempty"`
	Labels          map[string]any `json:"labels,omitempty"`
}

// onlyMetadata asks the API server to answer with an object's metadata alone: to encode the rest costs it time that
// other writes need.
const onlyMetadata = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// versionAfter sends a write, and returns the object's new version.
func versionAfter(ctx context.Context, write *rest.Request) (string, error) {
	var out metav1.PartialObjectMetadata
	err := write.SetHeader("Accept", onlyMetadata).Do(ctx).Into(&out)
	return out.ResourceVersion, err
}
