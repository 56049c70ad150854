package node

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// lateAgent is an agent that knows the pod shop/p and no namespace; what it asks the API server for, and then takes in, is in the lists.
type lateAgent struct {
	*Agent
	asked, observed []string
}

func startLateAgent(t *testing.T) *lateAgent {
	a := &lateAgent{Agent: newAgent("n1", compiletest.Small("n1", world.SharedGateway).Config, slog.New(slog.DiscardHandler))}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked = append(a.asked, r.URL.Path)
		kind, name := "Namespace", "shop"
		if strings.Contains(r.URL.Path, "/pods/") {
			kind, name = "Pod", "p"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,"uid":"u"}}`, kind, name)
	}))
	t.Cleanup(server.Close)
	clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	a.api = &API{Node: "n1", Clients: clients, Observe: func(obj any) error { a.observed = append(a.observed, fmt.Sprintf("%T", obj)); return nil }}
	a.ear = listen.NewFake()
	a.loop.Do(func(w *world.World) []world.Touch {
		return w.SetPod(&world.Pod{Namespace: "shop", Name: "p", UID: "u", Node: "n1"})
	})
	a.loop.Synced()
	go a.loop.Run(t.Context())
	return a
}

// TestPodWaitsForItsNamespace: while the watch has not brought the namespace, nobody knows which EgressIP selects the pod.
func TestPodWaitsForItsNamespace(t *testing.T) {
	a := startLateAgent(t)
	time.AfterFunc(podWait/4, func() {
		a.loop.Do(func(w *world.World) []world.Touch { return w.SetNamespace(&world.Namespace{Name: "shop"}) })
	})
	start := time.Now()
	if info, err := a.Pod(t.Context(), "shop", "p", "u"); err != nil || info.UID != "u" {
		t.Errorf("have %v, %v", info, err)
	}
	if took := time.Since(start); took < podWait/4 || len(a.asked) > 0 {
		t.Errorf("took %v and asked for %v", took, a.asked)
	}
}

// TestNamespaceIsAskedFor: it comes from the API server when the watch does not bring it in time.
func TestNamespaceIsAskedFor(t *testing.T) {
	a := startLateAgent(t)
	if info, err := a.Pod(t.Context(), "shop", "p", "u"); err != nil || info.UID != "u" {
		t.Errorf("have %v, %v", info, err)
	}
	if want := []string{fmt.Sprintf("%T", &corev1.Namespace{}), fmt.Sprintf("%T", &corev1.Pod{})}; !slices.Equal(a.observed, want) {
		t.Errorf("asked for %v, took in %v", a.asked, a.observed)
	}
}
