package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/explain"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// A fence is a kind that nothing in this module knows: a ConfigMap that drops what pods of its namespace send outside.
// Pods of the namespace start once it is closed. All that programs need of it is in fences.
type fence struct {
	namespace, name string
	closed          bool
}

func (f *fence) key() string { return f.namespace + "/" + f.name }

const (
	kindFence  world.Kind = 200
	kindFences world.Kind = 201
)

// fences is what a feature's folder says of its kind, in one value.
func fences() feature.Kind {
	resource := kube.Resource[*corev1.ConfigMap, fence]{
		Plural: "configmaps", Client: func(c *kube.Clients) rest.Interface { return c.Core },
		Example: &corev1.ConfigMap{},
		Convert: func(o *corev1.ConfigMap) *fence { return &fence{o.Namespace, o.Name, o.Data["closed"] == "true"} },
		Set:     func(w *world.World, f *fence) { world.Set(w, kindFence, f) },
		Del:     func(w *world.World, key string) { world.Del[fence](w, kindFence, key) },
	}
	return feature.Kind{
		Resources: []kube.Kind{resource},
		Table: func(w *world.World) {
			world.Keep(w, world.Spec[fence]{One: kindFence, All: kindFences, Object: "Fence", Key: (*fence).key,
				Same: func(a, b *fence) bool { return *a == *b }})
		},
		Features: []compile.Feature{fencing{}},
		Reads:    []feature.Read{{Resource: resource, InNamespace: true}},
		Awaited: func(w *world.View, pod string) ref.Object {
			if f := fenceOf(w, w.Pod(pod)); f != nil && !f.closed {
				return ref.Of("Fence", f.key())
			}
			return ref.Object{}
		},
		Explain: func(w *world.World, pod *world.Pod, _ []trace.End) string {
			if f := fenceOf(&w.View, pod); f != nil {
				return "Fence/" + f.key() + " drops what its namespace's pods send outside\n"
			}
			return ""
		},
	}
}

func fenceOf(w *world.View, pod *world.Pod) *fence {
	for f := range world.Each[fence](w, kindFence) {
		if pod != nil && pod.Namespace == f.namespace {
			return f
		}
	}
	return nil
}

// fencing compiles the rows of fences.
type fencing struct{}

func (fencing) Name() string    { return "fence" }
func (fencing) Per() world.Kind { return kindFence }

func (fencing) Compile(w *world.View, key string, out *plan.Rows) {
	f := world.Get[fence](w, kindFence, key)
	if f == nil {
		return
	}
	set := "fence/" + key
	out.AddSet(set)
	for p := range world.Each[world.Pod](w, world.KindPod) {
		for _, ip := range world.V4.OfAddrs(p.IPs) {
			if p.Namespace == f.namespace && p.Node == w.Self {
				out.AddElem(set, ip.String())
			}
		}
	}
	match := "ip4.src == " + plan.InSet(set) + " && ip4.dst != 10.244.0.0/16"
	out.AddPolicy(plan.DefaultNames(), set, plan.PriorityEgressIP, match, "drop", nil, nil)
}

// withFences is Egret with one line more in its list of features.
func withFences() feature.Kinds { return append(all.ServedKinds(), fences()) }

// TestAKindIsOneValue: rows, a packet and an explanation follow from what fences says, and from one line in the list.
func TestAKindIsOneValue(t *testing.T) {
	kinds := withFences()
	source := kube.NewSource(nil, slog.New(slog.DiscardHandler), kube.Followed(kinds.AllResources()...)...)
	o := &corev1.ConfigMap{Data: map[string]string{"closed": "true"}}
	o.Namespace, o.Name, o.ResourceVersion = "ns0", "around", "5"
	if err := source.Observe(o); err != nil {
		t.Fatal(err)
	}
	show, pod := <-source.Changes(), compiletest.Pod(0, "n1")
	worldOf := func(node string) *world.World {
		w := kinds.NewWorld(node, compiletest.Config(world.SharedGateway))
		w.SetHost(compiletest.Host("n1"))
		for i := 1; i <= 3; i++ {
			w.SetNode(compiletest.Node(i))
		}
		w.SetPod(pod)
		return w
	}
	w := worldOf("n1")
	w.SetAttachment(compiletest.Attachment(pod))
	memo := compile.NewMemo(kinds.AllFeatures())
	memo.Update(w)
	outside := trace.Packet{Src: pod.IPs[0], Dst: netip.MustParseAddr("172.18.0.100"), Proto: "tcp", DstPort: 80}
	for _, want := range []string{"outside by n1 as 172.18.0.2", "dropped at n1: policy fence/ns0/around"} {
		net, err := trace.Read(trace.Network{"n1": memo.State})
		if err != nil {
			t.Fatal(err)
		}
		if have := trace.Sentences(net.Walk(outside)); have != want {
			t.Errorf("a packet: %s, not %s", have, want)
		}
		show(w)
		memo.Update(w)
	}
	c := worldOf("")
	show(c)
	outside.Src = netip.Addr{}
	a, err := explain.Ask(kinds, c, pod.Key(), outside)
	if err != nil {
		t.Fatal(err)
	}
	if text := a.Text(); !strings.Contains(text, "dropped at n1: policy fence/ns0/around") ||
		!strings.Contains(text, "  Fence/ns0/around drops what its namespace's pods send outside\n") {
		t.Errorf("explained as\n%s", text)
	}
}

// fencedServer has a fence of namespace shop beside what a lateServer has; its watches bring nothing.
type fencedServer struct {
	*lateServer
	fenced, closed atomic.Bool
}

func (s *fencedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/configmaps") || r.URL.Query().Get("watch") != "" {
		s.lateServer.ServeHTTP(w, r)
		return
	}
	var items []string
	if s.fenced.Load() {
		items = []string{fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"f","uid":"f","resourceVersion":"6"},
			"data":{"closed":"%v"}}`, s.closed.Load())}
	}
	version, kind := "v1", "ConfigMapList"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
		version, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, s.list(version, kind, items...))
}

// TestAPodWaitsForAKind: the watch of fences is late. A pod starts with its egress paused until its fence is closed.
func TestAPodWaitsForAKind(t *testing.T) {
	s := &fencedServer{lateServer: &lateServer{version: 5}}
	a, _ := startAgentOf(t, s, withFences())
	a.setPaused = func(context.Context, string, bool) error { return nil }
	s.fenced.Store(true)
	if err := a.Attached(t.Context(), ofShop); err != nil {
		t.Fatal(err)
	}
	isPaused := func(w *world.World) bool { return w.Attachment("shop/p").EgressPaused }
	paused := false
	if err := a.loop.Ask(t.Context(), func(w *world.World) { paused = isPaused(w) }); err != nil || !paused {
		t.Fatalf("it starts before the fence is closed, and its egress is not paused: %v", err)
	}
	a.loop.Do(func(w *world.World) { world.Set(w, kindFence, &fence{"shop", "f", true}) })
	if _, err := askUntilFinal(t.Context(), a.watchers, func(w *world.World) (bool, bool) {
		return true, !isPaused(w)
	}); err != nil {
		t.Fatal(err)
	}
}
