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
	var asked metav1.ListOptions
	r := &resumer{stream: &stream{}, ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			asked = o
			return &corev1.PodList{}, nil
		}}}
	_, err := r.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
	if err != nil || asked.ResourceVersion != "" || asked.Limit != 0 {
		t.Errorf("lists with version %q, by %d: %v", asked.ResourceVersion, asked.Limit, err)
	}
}
