package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// spreadZones puts every node into a zone of its own, as specs about topology want.
func (s suite) spreadZones(ctx context.Context) error {
	client, err := s.cluster.Client()
	if err != nil {
		return err
	}
	for i, n := range s.cluster.Nodes() {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"zone-%d"}}}`, i+1)
		if _, err := client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
