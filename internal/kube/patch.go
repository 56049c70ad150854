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
	Client                  func(*Clients) rest.Interface // of the kind's group
}

// Patch sends a write. It returns the object's new version.
func (c *Clients) Patch(ctx context.Context, p Patch) (string, error) {
	r := p.Client(c).Patch(p.Type).NamespaceIfScoped(p.Namespace, p.Namespace != "")
	r = r.Resource(p.Plural).Name(p.Name).Body(p.Body)
	if p.Subresource != "" {
		r = r.SubResource(p.Subresource)
	}
	version, err := versionAfter(ctx, r)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", p.Plural, keyOf(p.Namespace, p.Name), err)
	}
	return version, nil
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
