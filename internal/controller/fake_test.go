package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// api is an API server in memory: objects with versions, and a watch that comes late.
type api struct {
	mu       sync.Mutex
	version  int
	nodes    map[string]*corev1.Node
	eips     map[string]*v1.EgressIP
	services map[string]*corev1.Service // "namespace/name"
	egress   map[string]*v1.EgressService
	writes   []string // "egressips/e"
	events   []kube.Event
	fail     func(object string) error // asked before each write
	refuse   string                    // an annotation of Nodes that may not be written; "": all may

	delay   time.Duration
	watch   chan kube.Change
	changes chan kube.Change
	synced  atomic.Bool
	back    atomic.Int64 // how often a restore has been seen
}

func newAPI(delay time.Duration) *api {
	return &api{nodes: map[string]*corev1.Node{}, eips: map[string]*v1.EgressIP{},
		services: map[string]*corev1.Service{}, egress: map[string]*v1.EgressService{}, delay: delay,
		watch: make(chan kube.Change, 100000), changes: make(chan kube.Change, 4096),
		fail: func(string) error { return nil }}
}

func (a *api) Changes() <-chan kube.Change                    { return a.changes }
func (a *api) Synced() bool                                   { return a.synced.Load() }
func (a *api) WentBack() int64                                { return a.back.Load() }
func (*api) LookAtWatches(now time.Time) time.Time            { return now.Add(time.Minute) }
func (*api) ReadNow(context.Context, kube.Kind, string) error { return nil }

// run brings the watch's events to the controller, late and in order; what is there first is the list.
func (a *api) run(ctx context.Context) {
	first := len(a.watch)
	for i := 0; ; i++ {
		if i == first {
			a.changes <- func(*world.World) { a.synced.Store(true) }
		}
		select {
		case <-ctx.Done():
			return
		case c := <-a.watch:
			if a.synced.Load() && !sleep(ctx, a.lag()) {
				return
			}
			a.changes <- c
		}
	}
}

// lag is how late the watch is now.
func (a *api) lag() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.delay
}

// sleep says whether it could: not if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (a *api) next() string {
	a.version++
	return strconv.Itoa(a.version)
}

func (a *api) putNode(n *corev1.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.showNode(n.DeepCopy())
}

func (a *api) showNode(n *corev1.Node) {
	n.ResourceVersion = a.next()
	a.nodes[n.Name] = n
	shown := kube.Node(n.DeepCopy())
	a.watch <- func(w *world.World) { w.SetNode(shown) }
}

func (a *api) deleteNode(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.nodes, name)
	a.watch <- func(w *world.World) { w.DelNode(name) }
}

func (a *api) putEgressIP(e *v1.EgressIP) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := e.DeepCopy()
	if old := a.eips[e.Name]; old != nil {
		c.Status, c.UID, c.CreationTimestamp, c.Generation = old.Status, old.UID, old.CreationTimestamp,
			old.Generation+1
	}
	a.showEgressIP(c)
}

func (a *api) showEgressIP(e *v1.EgressIP) {
	e.ResourceVersion = a.next()
	a.eips[e.Name] = e
	shown := kube.EgressIP(e.DeepCopy())
	a.watch <- func(w *world.World) { w.SetEgressIP(shown) }
}

func (a *api) deleteEgressIP(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.eips, name)
	a.watch <- func(w *world.World) { w.DelEgressIP(name) }
}

func (a *api) hold(node string, holds map[string][]string) {
	h := &world.Holding{Node: node, BootID: "boot", Holds: map[string][]netip.Addr{}}
	for name, ips := range holds {
		for _, ip := range ips {
			h.Holds[name] = append(h.Holds[name], netip.MustParseAddr(ip))
		}
	}
	a.watch <- func(w *world.World) { w.SetHolding(h) }
}

// fault has a node report that one of its networks can host nothing.
func (a *api) fault(node, network, why string) {
	h := &world.Holding{Node: node, BootID: "boot",
		Faults: map[netip.Prefix]string{netip.MustParsePrefix(network): why}}
	a.watch <- func(w *world.World) { w.SetHolding(h) }
}

// begin is the start of every write: it may fail, and it must be of the latest version.
func (a *api) begin(object, have, want string) error {
	if err := a.fail(object); err != nil {
		return err
	}
	if have == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, object)
	}
	if have != want {
		return apierrors.NewConflict(schema.GroupResource{Resource: "x"}, object, fmt.Errorf("is at %s, not %s", have,
			want))
	}
	a.writes = append(a.writes, object)
	return nil
}

// Patch is a write: of annotations, of the status of an EgressIP, or of the controller's conditions of a Service.
func (a *api) Patch(_ context.Context, p kube.Patch) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch p.Plural {
	case "nodes":
		return a.patchNode(p)
	case "egressips":
		return a.patchEgressIP(p)
	case "egressservices":
		return a.patchEgressService(p)
	}
	return a.applyService(p)
}

func decode[T any](p kube.Patch) T {
	var out T
	if err := json.Unmarshal(p.Body, &out); err != nil {
		panic(err)
	}
	return out
}

func (a *api) patchNode(p kube.Patch) (string, error) {
	patch := decode[struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]*string
			Labels          map[string]*string
		}
	}](p).Metadata
	have := ""
	if n := a.nodes[p.Name]; n != nil {
		have = n.ResourceVersion
	}
	if err := a.begin("nodes/"+p.Name, have, patch.ResourceVersion); err != nil {
		return "", err
	}
	if _, is := patch.Annotations[a.refuse]; is {
		why := fmt.Errorf("annotation %s", a.refuse)
		return "", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, p.Name, why)
	}
	n := a.nodes[p.Name].DeepCopy()
	n.Annotations, n.Labels = merged(n.Annotations, patch.Annotations), merged(n.Labels, patch.Labels)
	a.showNode(n)
	return n.ResourceVersion, nil
}

// merged is a map after a merge patch of it (RFC 7386).
func merged(all map[string]string, patch map[string]*string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range patch {
		if value == nil {
			delete(all, key)
		} else {
			all[key] = *value
		}
	}
	return all
}

func (a *api) patchEgressIP(p kube.Patch) (string, error) {
	patch, have := decode[v1.EgressIP](p), ""
	if o := a.eips[p.Name]; o != nil {
		have = o.ResourceVersion
	}
	if err := a.begin("egressips/"+p.Name, have, patch.ResourceVersion); err != nil {
		return "", err
	}
	o := a.eips[p.Name].DeepCopy()
	o.Status = patch.Status
	a.showEgressIP(o)
	return o.ResourceVersion, nil
}

func (a *api) putService(s *corev1.Service) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.showService(s.DeepCopy())
}

func (a *api) showService(s *corev1.Service) {
	s.ResourceVersion = a.next()
	a.services[s.Namespace+"/"+s.Name] = s
	shown := kube.Service(s.DeepCopy(), nil)
	a.watch <- func(w *world.World) { w.SetService(shown) }
}

func (a *api) applyService(p kube.Patch) (string, error) {
	patch, have, key := decode[metav1.PartialObjectMetadata](p), "", p.Namespace+"/"+p.Name
	if o := a.services[key]; o != nil && o.UID == patch.UID {
		have = o.ResourceVersion
	}
	if err := a.begin("services/"+key, have, have); err != nil {
		return "", err
	}
	text, err := json.Marshal(a.services[key])
	if err == nil {
		text, err = strategicpatch.StrategicMergePatch(text, p.Body, corev1.Service{})
	}
	o := &corev1.Service{}
	if err := errors.Join(err, json.Unmarshal(text, o)); err != nil {
		panic(err)
	}
	a.showService(o)
	return o.ResourceVersion, nil
}

func (a *api) PostEvent(_ context.Context, p kube.Posting) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, p.Event)
	return nil
}

// assigned is where an EgressIP's addresses are: "n1=172.18.0.33".
func (a *api) assigned(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s []string
	if e := a.eips[name]; e != nil {
		for _, i := range e.Status.Items {
			s = append(s, i.Node+"="+i.EgressIP)
		}
	}
	return strings.Join(s, " ")
}

func (a *api) condition(name, kind string) metav1.Condition {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.eips[name]; e != nil {
		for _, c := range e.Status.Conditions {
			if c.Type == kind {
				return c
			}
		}
	}
	return metav1.Condition{}
}

func (a *api) annotation(node, key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[node]; n != nil {
		return n.Annotations[key]
	}
	return ""
}

func (a *api) written(object string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, w := range a.writes {
		if w == object {
			n++
		}
	}
	return n
}

// reasons are the reasons of the Events on an object so far, sorted.
func (a *api) reasons(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s []string
	for _, e := range a.events {
		if e.Regarding.Name == name {
			s = append(s, e.Reason)
		}
	}
	slices.Sort(s)
	return strings.Join(s, " ")
}

// aNode is an egress node whose agent has published everything; host is the last byte of its address.
func aNode(name string, host int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelEgressAssignable: ""},
			Annotations: map[string]string{
				v1.AnnotationNodeChassisID:     name,
				v1.AnnotationNodePrimaryIfaddr: fmt.Sprintf(`{"ipv4":"172.18.0.%d/16"}`, host),
			}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func anEgressIP(name string, age int, ips ...string) *v1.EgressIP {
	return &v1.EgressIP{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Unix(int64(100000-age), 0))},
		Spec: v1.EgressIPSpec{EgressIPs: ips},
	}
}

// eventually waits until have is want.
func eventually(t *testing.T, what, want string, have func() string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		h := have()
		if h == want {
			synctest.Wait() // what follows from it
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: have %q, want %q", what, h, want)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
