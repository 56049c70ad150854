package kube

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/world"
)

// egressNodeServer is an API server that lists EgressNodes by fields. An old one does not know the field of their form.
type egressNodeServer struct {
	old  bool
	list []egretv1.EgressNode
}

func (s egressNodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case s.old && strings.Contains(selector.String(), "status.formatVersion"):
		http.Error(w, "field label not supported: status.formatVersion", http.StatusBadRequest)
		return
	case r.URL.Query().Get("watch") != "":
		http.Error(w, "off", http.StatusServiceUnavailable)
		return
	}
	out := egretv1.EgressNodeList{TypeMeta: metav1.TypeMeta{APIVersion: egretv1.GroupVersion.String(),
		Kind: "EgressNodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
	for _, n := range s.list {
		if selector.Matches(fields.Set{"metadata.name": n.Name,
			"status.formatVersion": strconv.Itoa(int(n.Status.FormatVersion))}) {
			out.Items = append(out.Items, n)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		panic(err)
	}
}

func egressNodeOf(name string, form int32) egretv1.EgressNode {
	return egretv1.EgressNode{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "5"},
		Status: egretv1.EgressNodeStatus{FormatVersion: form, BootID: "boot"}}
}

// TestAgentsFollowWhatConcernsThem: an agent follows its own EgressNode, and of others those that are not for
// controllers alone. An API server that cannot tell them apart gives all of them.
func TestAgentsFollowWhatConcernsThem(t *testing.T) {
	list := []egretv1.EgressNode{egressNodeOf("n1", egretv1.FormatForControllers),
		egressNodeOf("holder", egretv1.FormatVersion), egressNodeOf("idle", egretv1.FormatForControllers)}
	for name, c := range map[string]struct {
		old  bool
		want map[string]bool
	}{
		"selects": {false, map[string]bool{"n1": true, "holder": true, "idle": false}},
		"refuses": {true, map[string]bool{"n1": true, "holder": true, "idle": true}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(egressNodeServer{c.old, list})
			defer server.Close()
			clients, err := NewClients(&rest.Config{Host: server.URL, QPS: -1})
			must(t, err)
			source := NewSource(clients, slog.New(slog.DiscardHandler), ownEgressNode("n1"), othersEgressNodes("n1"))
			go source.Run(t.Context())
			w := world.New("n1", &world.Config{})
			for deadline := time.After(20 * time.Second); !source.Synced(); {
				select {
				case change := <-source.Changes():
					change(w)
				case <-deadline:
					t.Fatal("not synced")
				}
			}
			for node, want := range c.want {
				if have := w.Holding(node) != nil; have != want {
					t.Errorf("%s: followed %v, want %v", node, have, want)
				}
			}
		})
	}
}

// TestOwnReportIsAskedForByName: of two tables that follow one resource, the one that has the object answers for it.
func TestOwnReportIsAskedForByName(t *testing.T) {
	w := world.New("n1", &world.Config{})
	source := NewSource(nil, slog.New(slog.DiscardHandler), FollowedBy("n1")...)
	take := func(name, version string) {
		t.Helper()
		o := egressNodeOf(name, egretv1.FormatForControllers)
		o.ResourceVersion = version
		must(t, source.Observe(&o))
		(<-source.Changes())(w)
	}
	take("n1", "10")
	take("n2", "20")
	if !source.Overwritten(EgressNodes(), "n1", "9") || source.Overwritten(EgressNodes(), "n1", "10") {
		t.Error("versions of n1 are compared with another's")
	}
	if w.Holding("n1") == nil || w.Holding("n2") == nil {
		t.Error("one is not in the world")
	}
}

// podServer is an API server that lists pods by their node.
type podServer []corev1.Pod

func (s podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil || r.URL.Query().Get("watch") != "" {
		http.Error(w, "off", http.StatusServiceUnavailable)
		return
	}
	out := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
	for _, p := range s {
		if selector.Matches(fields.Set{"spec.nodeName": p.Spec.NodeName}) {
			out.Items = append(out.Items, p)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		panic(err)
	}
}

// TestAgentsFollowBoundPods: an agent follows a pod once it has a node, and takes one in that a request returned.
func TestAgentsFollowBoundPods(t *testing.T) {
	pod := func(name, node string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "5"},
			Spec: corev1.PodSpec{NodeName: node}}
	}
	server := httptest.NewServer(podServer{pod("bound", "n2"), pod("waits", "")})
	defer server.Close()
	clients, err := NewClients(&rest.Config{Host: server.URL, QPS: -1})
	must(t, err)
	kinds := slices.DeleteFunc(FollowedBy("n1"), func(k Kind) bool { return k.pluralName() != "pods" })
	source := NewSource(clients, slog.New(slog.DiscardHandler), kinds...)
	go source.Run(t.Context())
	w := world.New("n1", &world.Config{})
	take := func() {
		select {
		case change := <-source.Changes():
			change(w)
		case <-time.After(20 * time.Second):
			t.Fatal("no change")
		}
	}
	for !source.Synced() {
		take()
	}
	if w.Pod("a/bound") == nil || w.Pod("a/waits") != nil {
		t.Errorf("bound %v, waits %v", w.Pod("a/bound"), w.Pod("a/waits"))
	}
	asked := pod("asked", "n1")
	asked.ResourceVersion = "6"
	must(t, source.Observe(&asked))
	if take(); w.Pod("a/asked") == nil {
		t.Error("a pod that a request returned is not in the world")
	}
}
