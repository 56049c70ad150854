package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// ReadNow has the world take in all objects of a kind in a namespace, "" for all, as they are now, and which are gone.
// Usually the watch has brought them, and their metadata say so. It fails if etcd was restored from a backup, and no
// watch has found that out yet.
func (s *Source) ReadNow(ctx context.Context, k Kind, namespace string) error {
	if err := s.readNow(ctx, k, namespace); err != nil {
		return fmt.Errorf("list %s: %w", k.pluralName(), err)
	}
	return nil
}

func (s *Source) readNow(ctx context.Context, k Kind, namespace string) error {
	metadata, check := &metav1.PartialObjectMetadataList{}, s.BeginRead(k, "")
	request := func() *rest.Request { return s.clients.ListRequest(k, namespace) }
	err := request().SetHeader("Accept", onlyMetadataList).Do(ctx).Into(metadata)
	if err == nil {
		err = check(metadata.ResourceVersion)
	}
	if err != nil {
		return err
	}
	outdated, err := s.ObserveList(k, namespace, metadata)
	if err != nil || !outdated {
		return err
	}
	list, err := request().Do(ctx).Get()
	if err != nil {
		return err
	}
	return meta.EachListItem(list, func(o runtime.Object) error { return s.Observe(o) })
}

// onlyMetadataList is how a list of no more than metadata is asked for: api-concepts, "Receiving resources as ...
// metadata".
const onlyMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
