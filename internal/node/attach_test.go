package node

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/world"
)

// lateServer is an API server whose watches bring nothing. It has a pod shop/p on n1, a namespace with or without a
// label, EgressIPs for that label or none, and a Service shop/s for some pods or none.
type lateServer struct {
	mu       sync.Mutex
	version  int
	labelled bool
	created  bool
	serves   string   // label app of the Service's pods
	own      bool     // the namespace asks for its own network
	slices   []string // EndpointSlices
	off      bool
	asked    []string // what was asked for, other than by watches and their lists
}

// change edits what the server has, and forgets what was asked so far.
func (s *lateServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = nil
	f()
}

func (s *lateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	off := s.off
	q := r.URL.Query()
	if !q.Has("resourceVersion") { // as those of reflectors have
		s.asked = append(s.asked, r.URL.Path)
	}
	s.mu.Unlock()
	if q.Get("watch") != "" && q.Get("sendInitialEvents") == "" && !off {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	} else if off || q.Get("watch") != "" {
		http.Error(w, "off", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, s.answer(r.URL.Path, strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList")))
}

func (s *lateServer) answer(path string, metadata bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	namespace := fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","resourceVersion":"%d","labels":{"team":"%v"}}}`, s.version, s.labelled)
	if s.own {
		namespace = strings.Replace(namespace, `"team"`, `"k8s.ovn.org/primary-user-defined-network":"","team"`, 1)
	}
	pod := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"p","uid":"u","resourceVersion":"%d","labels":{"app":"web"}},"spec":{"nodeName":"n1"}}`, s.version)
	switch {
	case strings.HasSuffix(path, "/services") && s.serves != "":
		return s.services(metadata)
	case strings.HasSuffix(path, "/services"):
		return s.list("v1", "ServiceList")
	case strings.HasSuffix(path, "/endpointslices") && !metadata:
		return s.list("discovery.k8s.io/v1", "EndpointSliceList", s.slices...)
	case strings.HasSuffix(path, "/endpointslices"):
		return s.list("meta.k8s.io/v1", "PartialObjectMetadataList", s.slices...)
	case strings.HasSuffix(path, "/namespaces/shop"):
		return namespace
	case strings.HasSuffix(path, "/namespaces"):
		return s.list("v1", "NamespaceList", namespace)
	case strings.HasSuffix(path, "/pods"):
		return s.list("v1", "PodList", pod)
	case strings.HasSuffix(path, "/pods/p"):
		return pod
	case metadata && (strings.HasSuffix(path, "/egressiptraffics") || strings.HasSuffix(path, "/egressservices")):
		return s.list("meta.k8s.io/v1", "PartialObjectMetadataList")
	case !s.created && metadata:
		return s.list("meta.k8s.io/v1", "PartialObjectMetadataList")
	case metadata:
		return s.list("meta.k8s.io/v1", "PartialObjectMetadataList",
			fmt.Sprintf(`{"metadata":{"name":"e","resourceVersion":"%d"}}`, s.version))
	case !s.created:
		return s.list("k8s.ovn.org/v1", "EgressIPList")
	}
	return s.list("k8s.ovn.org/v1", "EgressIPList", fmt.Sprintf(`{"metadata":{"name":"e","resourceVersion":"%d"},
		"spec":{"egressIPs":["172.18.0.50"],"namespaceSelector":{"matchLabels":{"team":"true"}}},
		"status":{"items":[{"node":"n2","egressIP":"172.18.0.50"}]}}`, s.version))
}

func (s *lateServer) services(metadata bool) string {
	const item = `{"metadata":{"namespace":"shop","name":"s","uid":"s","resourceVersion":"%d"},"spec":{"type":"LoadBalancer",
		"clusterIP":"10.96.0.9","clusterIPs":["10.96.0.9"],"selector":{"app":%q},"ports":[{"port":80,"protocol":"TCP"}]},
		"status":{"loadBalancer":{"ingress":[{"ip":"172.19.0.100"}]}}}`
	one := fmt.Sprintf(item, s.version, s.serves)
	if metadata {
		return s.list("meta.k8s.io/v1", "PartialObjectMetadataList", one)
	}
	return s.list("v1", "ServiceList", one)
}

func (s *lateServer) list(version, kind string, items ...string) string {
	return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`, kind, version,
		s.version, strings.Join(items, ","))
}

// startLateAgent is an agent of n1 that has listed what the server had, and a target with all that it has written.
func startLateAgent(t *testing.T, s *lateServer) (*Agent, *ovn.Fake) {
	return startAgentOf(t, s, all.ServedKinds())
}

// startAgentOf starts it with other kinds than Egret's, and follows those that come after these.
func startAgentOf(t *testing.T, s http.Handler, kinds feature.Kinds) (*Agent, *ovn.Fake) {
	server := httptest.NewServer(s)
	t.Cleanup(server.CloseClientConnections)
	clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	a, target := newAgent("n1", compiletest.Config(world.SharedGateway), kinds, slog.New(slog.DiscardHandler)),
		ovn.NewFake()
	a.loop.Planes, a.confirmed = []plane.Plane{target}, func() bool { return true }
	a.holding.withFakes(listen.NewFake())
	further := kinds[len(all.ServedKinds()):]
	a.source = kube.NewSource(clients, a.log, append(further.AllResources(), kube.Namespaces(), kube.Pods(),
		kube.EgressIPs(), kube.Services(), kube.EndpointSlices())...)
	a.api = &API{Node: "n1", Clients: clients, Observe: a.source.Observe, ReadNow: a.source.ReadNow,
		BeginRead: a.source.BeginRead}
	a.reads, a.clearing.pastLists = newReads(a.api, a.kinds.AllReads(), a.caughtUp, a.loop), a.source.SeenPods
	a.publisher = newPublisher("n1", a.source, nil, nil, a.log)
	a.loop.Do(func(w *world.World) {
		w.SetHost(compiletest.Host("n1"))
		for i := 1; i <= 3; i++ {
			w.SetNode(compiletest.Node(i))
		}
		holds := map[string][]netip.Addr{"e": {compiletest.V4(172, 18, 0, 50)}}
		w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2", Holds: holds})
	})
	go a.source.Run(t.Context())
	go a.followCluster(t.Context(), func() {})
	go a.loop.RunRounds(t.Context())
	if err := a.untilTrue(t.Context(), a.source.Synced); err != nil {
		t.Fatal(err)
	}
	return a, target
}

var ofShop = cniserver.PodPort{
	Namespace: "shop", Name: "p", UID: "u", HostIface: "veth", MAC: "0a:58:0a:f4:01:0a",
	IPs: []netip.Addr{netip.MustParseAddr("10.244.1.10")},
}

// isSteered says whether the target has the pod in the set of EgressIP e's pods on this node.
func isSteered(t *testing.T, a *Agent, target *ovn.Fake) bool {
	t.Helper()
	return isIn(t, a, target, "egressip/e/local.v4")
}

func isIn(t *testing.T, a *Agent, target *ovn.Fake, set string) (is bool) {
	t.Helper()
	elem := plan.SetElem{Set: set, Addr: "10.244.1.10"}
	if err := a.loop.Ask(t.Context(), func(*world.World) { _, is = target.Held().SetElems[elem] }); err != nil {
		t.Fatal(err)
	}
	return is
}

// TestPodIsRefused: a pod that a kind refuses is not attached, and the runtime is told why.
func TestPodIsRefused(t *testing.T) {
	s := &lateServer{version: 5, created: true}
	refusing := feature.Kind{Refuse: func(_ *world.View, namespace, pod string) string {
		return pod + " is not in " + namespace
	}}
	a, _ := startAgentOf(t, s, append(all.ServedKinds(), refusing))
	if err := a.Attached(t.Context(), ofShop); err == nil || err.Error() != "p is not in shop" {
		t.Errorf("attached: %v", err)
	}
	if info, err := a.Pod(t.Context(), "shop", "p", "u"); err != nil || info.Refused != "p is not in shop" {
		t.Errorf("looked up: %+v, %v", info, err)
	}
}

// TestPodStartsByWhatWasWrittenBefore: the watches of namespaces and of EgressIPs are late; what was written before
// the pod decides all the same.
func TestPodStartsByWhatWasWrittenBefore(t *testing.T) {
	for name, late := range map[string]struct{ before, after func(*lateServer) }{
		"namespace": {func(s *lateServer) { s.created = true },
			func(s *lateServer) { s.version, s.labelled = 6, true }},
		"EgressIP": {func(s *lateServer) { s.labelled = true },
			func(s *lateServer) { s.version, s.created = 6, true }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &lateServer{version: 5}
			late.before(s)
			a, target := startLateAgent(t, s)
			s.change(func() { late.after(s) })
			if err := a.Attached(t.Context(), ofShop); err != nil {
				t.Fatal(err)
			}
			if !isSteered(t, a, target) {
				t.Errorf("the pod starts and is not steered; asked for %v", s.asked)
			}
		})
	}
}

// TestPodDoesNotStartByAnEndedHistory: etcd was restored, and the EgressIP is gone or another one. What is read of it
// is older than what is there, and counts for nothing until EgressIPs have been listed.
func TestPodDoesNotStartByAnEndedHistory(t *testing.T) {
	s := &lateServer{version: 5, labelled: true, created: true}
	a, _ := startLateAgent(t, s)
	s.change(func() { s.version, s.created = 3, false })
	a.source.MarkForked(kube.EgressIPs())
	for _, k := range []kube.Kind{kube.Namespaces(), kube.Pods(), kube.Services(), kube.EndpointSlices()} {
		if err := a.source.Store(k).Replace(nil, "3"); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Attached(t.Context(), ofShop); err == nil || !strings.Contains(err.Error(), "etcd was restored") {
		t.Errorf("attached: %v", err)
	}
	if err := a.source.Store(kube.EgressIPs()).Replace(nil, "3"); err != nil {
		t.Fatal(err)
	}
	if err := a.Attached(t.Context(), ofShop); err != nil {
		t.Errorf("the list is there: %v", err)
	}
}

// TestPodStartsByItsService: the watch of Services is late, and one that has an EgressService in force has come to
// select the pod. Where a namespace has no EgressService nobody asks for its Services.
func TestPodStartsByItsService(t *testing.T) {
	s := &lateServer{version: 5, serves: "other"}
	a, target := startLateAgent(t, s)
	ip := compiletest.V4(172, 19, 0, 100)
	a.loop.Do(func(w *world.World) {
		e := &world.EgressService{Namespace: "shop", Name: "s", UID: "e", Host: "n2", Placement: world.Placement{
			Items: []world.Assignment{{Node: "n2", IP: ip}}, InForce: [2]bool{true}}}
		holds := map[string][]netip.Addr{"shop/s": {ip}}
		h := &world.Holding{Node: "n2", BootID: "boot-n2", Holds: holds}
		w.SetEgressService(e)
		w.SetHolding(h)
	})
	s.change(func() { s.version, s.serves = 6, "web" })
	if err := a.Attached(t.Context(), ofShop); err != nil {
		t.Fatal(err)
	}
	if !isIn(t, a, target, "egressservice/shop/s/local.v4") {
		t.Errorf("the pod starts and is not steered; asked for %v", s.asked)
	}
}

// TestPodStartsBesideFormerEndpoint: the watch of EndpointSlices is late, and the address of the new pod was that of an
// endpoint of a Service whose EgressService has this very node as host.
func TestPodStartsBesideFormerEndpoint(t *testing.T) {
	s := &lateServer{version: 5, serves: "other", slices: []string{`{"metadata":{"namespace":"shop","name":"s","uid":"s",
		"resourceVersion":"5","labels":{"kubernetes.io/service-name":"s"}},"addressType":"IPv4",
		"endpoints":[{"addresses":["10.244.1.5"],"nodeName":"n1"}],"ports":[{"name":"","port":80,"protocol":"TCP"}]}`}}
	a, _ := startLateAgent(t, s)
	a.loop.Do(func(w *world.World) {
		w.SetEgressService(&world.EgressService{Namespace: "shop", Name: "s", UID: "e", Host: "n1"})
	})
	endpoints := func() (n int) {
		if err := a.loop.Ask(t.Context(), func(w *world.World) {
			n = len(w.Service("shop/s").Ports[0].Endpoints)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := endpoints(); n != 1 {
		t.Fatalf("the Service has %d endpoints at first", n)
	}
	s.change(func() { s.version, s.slices = 6, nil })
	if err := a.Attached(t.Context(), ofShop); err != nil {
		t.Fatal(err)
	}
	if n := endpoints(); n != 0 {
		t.Errorf("the Service has %d endpoints, of a slice that is gone; asked for %v", n, s.asked)
	}
}

// TestPodStartAsksLittle: what the watches have brought is not fetched.
func TestPodStartAsksLittle(t *testing.T) {
	s := &lateServer{version: 5, labelled: true, created: true}
	a, target := startLateAgent(t, s)
	s.change(func() {})
	if err := a.Attached(t.Context(), ofShop); err != nil || !isSteered(t, a, target) {
		t.Errorf("error %v, or the pod is not steered", err)
	}
	slices.Sort(s.asked)
	want := []string{"/api/v1/namespaces/shop", "/apis/k8s.ovn.org/v1/egressips",
		"/apis/k8s.ovn.org/v1/egressiptraffics", "/apis/k8s.ovn.org/v1/namespaces/shop/egressservices"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked for %v, want %v", s.asked, want)
	}
}

// TestPodDoesNotStartUnasked: while the API server cannot be asked, nobody knows which source is right for a pod.
func TestPodDoesNotStartUnasked(t *testing.T) {
	s := &lateServer{version: 5, labelled: true, created: true}
	a, _ := startLateAgent(t, s)
	s.change(func() { s.off = true })
	if err := a.Attached(t.Context(), ofShop); err == nil ||
		!strings.Contains(err.Error(), "is it reachable from this node?") {
		t.Errorf("the pod starts: %v", err)
	}
}

// TestPodIsAskedFor: it comes from the API server when the watch does not bring it in time.
func TestPodIsAskedFor(t *testing.T) {
	s := &lateServer{version: 5}
	a, _ := startLateAgent(t, s)
	if err := a.loop.DoAndWait(t.Context(),
		func(w *world.World) { w.DelPod("shop/p") }); err != nil {
		t.Fatal(err)
	}
	s.change(func() {})
	if info, err := a.Pod(t.Context(), "shop", "p", "u"); err != nil || info.UID != "u" ||
		!slices.Equal(s.asked, []string{"/api/v1/namespaces/shop/pods/p", "/api/v1/namespaces/shop"}) {
		t.Errorf("have %v, %v; asked for %v", info, err, s.asked)
	}
}

// TestPodIsAskedForWithItsNetwork: neither the pod nor its namespace has come by a watch, and the API server's answers
// say already which network the pod is for.
func TestPodIsAskedForWithItsNetwork(t *testing.T) {
	refusing := feature.Kind{Refuse: func(_ *world.View, _, _ string) string { return "not here" }}
	s := &lateServer{version: 5}
	a, _ := startAgentOf(t, s, append(all.ServedKinds(), refusing))
	s.change(func() { s.version, s.own = 6, true })
	if err := a.loop.DoAndWait(t.Context(), func(w *world.World) {
		w.DelPod("shop/p")
		w.DelNamespace("shop")
		w.SetNetwork(&world.Network{Name: "shop_blue", ID: 1, Namespaces: []string{"shop"}})
	}); err != nil {
		t.Fatal(err)
	}
	info, err := a.Pod(t.Context(), "shop", "p", "u")
	if err != nil || info.UID != "u" || info.Network != "shop_blue" || info.Refused == "" {
		t.Errorf("have %+v, %v", info, err)
	}
}
