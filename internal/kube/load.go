package kube

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/egret-net/egret/internal/world"
)

// Load has a world take in all objects of some kinds as they are now, and follows nothing. Each kind is one list of one
// moment, read a page at a time.
func Load(ctx context.Context, clients *Clients, w *world.World, kinds ...Kind) error {
	s := NewSource(clients, slog.New(slog.DiscardHandler), kinds...)
	for i, k := range kinds {
		objects, version, err := listAll(ctx, clients, k)
		if err == nil {
			err = s.tables[i].Replace(objects, version)
		}
		if err != nil {
			return fmt.Errorf("list %s, which this needs to be allowed to in all namespaces: %w", k.pluralName(), err)
		}
		(<-s.changes)(w)
	}
	return nil
}

func listAll(ctx context.Context, clients *Clients, k Kind) (objects []any, version string, err error) {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return k.restClient(clients).Get().Resource(k.pluralName()).VersionedParams(&o,
			metav1.ParameterCodec).Do(ctx).Get()
	})
	whole, _, err := pages.ListWithAlloc(ctx, metav1.ListOptions{LabelSelector: k.labelSelector()})
	if err != nil {
		return nil, "", err
	}
	about, err := meta.ListAccessor(whole)
	if err != nil {
		return nil, "", err
	}
	err = meta.EachListItem(whole, func(o runtime.Object) error {
		objects = append(objects, o)
		return nil
	})
	return objects, about.GetResourceVersion(), err
}
