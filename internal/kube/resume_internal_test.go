package kube

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// TestFirstListIsOfNow: a program that starts again lists what is there now, not what any API server has in its cache.
func TestFirstListIsOfNow(t *testing.T) {
	asked := "nothing"
	r := &resumer{ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			asked = o.ResourceVersion
			return &corev1.PodList{}, nil
		}}}
	if _, err := r.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil || asked != "" {
		t.Errorf("lists with version %q, %v", asked, err)
	}
}
