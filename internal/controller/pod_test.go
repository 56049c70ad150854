package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// TestClosedPortsOfAPod: an Event names the pod whose annotation cannot be read, though nothing is written of the pod.
func TestClosedPortsOfAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		show := func(text string) {
			p := kube.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-web",
				Annotations: map[string]string{v1.AnnotationOpenDefaultPorts: text}}})
			a.watch <- func(w *world.World) {
				w.SetNamespace(&world.Namespace{Name: "ns", OwnNetwork: true})
				w.SetPod(p)
			}
		}
		show("[{protocol: icmp}]")
		start(t, a)
		time.Sleep(5 * time.Second)
		show("icmp")
		eventually(t, "events", v1.EventPortsClosed, func() string { return a.reasons("web") })
		a.mu.Lock()
		defer a.mu.Unlock()
		if have, want := a.events[0].Regarding, (corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns",
			Name: "web", UID: "uid-web"}); have != want {
			t.Errorf("the Event is about %+v, want %+v", have, want)
		}
		if len(a.writes) > 0 {
			t.Errorf("written: %q", a.writes)
		}
	})
}
