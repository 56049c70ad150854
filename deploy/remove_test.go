package deploy_test

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox/image"
)

// TestRemoveSeesWhatPodsLeft: the DaemonSet that removes Egret has each writable folder of the host that the others
// have, but those of namespaces and of the kernel's modules, and runs their image with their settings.
func TestRemoveSeesWhatPodsLeft(t *testing.T) {
	var remove corev1.PodSpec
	for _, object := range decodeAll(t, os.DirFS("remove"), "*.yaml") {
		if o, is := object.(*appsv1.DaemonSet); is {
			remove = o.Spec.Template.Spec
		}
	}
	want, have := map[string]string{}, map[string]string{}
	folders := func(p corev1.PodSpec, of corev1.Container, into map[string]string) {
		for _, m := range of.VolumeMounts {
			i := slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			if i < 0 || p.Volumes[i].HostPath == nil || m.ReadOnly || m.Name == "netns" {
				continue
			}
			into[p.Volumes[i].HostPath.Path] = m.MountPath
		}
	}
	for name, p := range pods(t) {
		for _, c := range containers(p) {
			if folders(p, c, want); name == "egret-node" && c.Name == "agent" {
				for _, r := range containers(remove) {
					if diff := cmp.Diff(c.EnvFrom, r.EnvFrom); diff != "" || r.Image != image.Egret().Name {
						t.Errorf("%s runs %s, and its settings differ from the agent's: %s", r.Name, r.Image, diff)
					}
				}
			}
		}
	}
	for _, c := range containers(remove) {
		clear(have)
		if folders(remove, c, have); !cmp.Equal(want, have) {
			t.Errorf("folders of %s (-others' +its own):\n%s", c.Name, cmp.Diff(want, have))
		}
	}
}
