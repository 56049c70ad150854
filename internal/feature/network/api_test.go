package network_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/network"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// cluster is an API server in memory with one controller, and the world of an agent that follows the definitions.
type cluster struct {
	controller, agent *world.World
	decider           *network.Decider
	now               time.Time
	objects           map[world.Entry]metav1.Object
	version           int
	events            []string
}

func newCluster() *cluster {
	c := &cluster{objects: map[world.Entry]metav1.Object{}, now: time.Unix(1_000_000, 0).UTC()}
	c.controller, c.agent = c.newWorld(), c.newWorld()
	c.lead()
	return c
}

func (c *cluster) newWorld() *world.World {
	w := world.New("", compiletest.Config(world.SharedGateway))
	networks.KeepTables(w)
	return w
}

// lead begins a controller's term.
func (c *cluster) lead() {
	c.controller.Undecide()
	c.decider = network.NewDecider()
	c.controller.FollowChanges(c.decider.NoteChanged)
}

// create adds an object, as a user does. Each is a second younger than the last.
func (c *cluster) create(t failer, text string) {
	t.Helper()
	meta := &metav1.PartialObjectMetadata{}
	must(t, yaml.Unmarshal([]byte(text), meta))
	k := kindOf[meta.Kind]
	o := newObject(k)
	must(t, yaml.UnmarshalStrict([]byte(text), o))
	c.now = c.now.Add(time.Second)
	o.SetCreationTimestamp(metav1.NewTime(c.now))
	o.SetGeneration(1)
	c.store(k, o)
}

var kindOf = map[string]world.Kind{"Namespace": world.KindNamespace, ref.UserDefinedNetwork: world.KindUserNetwork,
	ref.ClusterUserDefinedNetwork: world.KindClusterNetwork, ref.NetworkAttachmentDefinition: world.KindDefinition}

func newObject(k world.Kind) metav1.Object {
	switch k {
	case world.KindUserNetwork:
		return &v1.UserDefinedNetwork{}
	case world.KindClusterNetwork:
		return &v1.ClusterUserDefinedNetwork{}
	case world.KindDefinition:
		return &cniv1.NetworkAttachmentDefinition{}
	}
	panic(fmt.Sprint("kind ", k))
}

// store shows an object's new version to all. One without finalizers that is being deleted is gone.
func (c *cluster) store(k world.Kind, o metav1.Object) {
	c.version++
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprint("uid-", c.version)))
	}
	o.SetResourceVersion(fmt.Sprint(c.version))
	key := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	entry := world.Entry{Kind: k, Key: key}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		delete(c.objects, entry)
		c.show(func(w *world.World) { del(w, entry) })
		return
	}
	c.objects[entry] = o
	c.show(func(w *world.World) { set(w, o) })
}

func (c *cluster) show(change func(*world.World)) {
	change(c.controller)
	change(c.agent)
}

func set(w *world.World, o metav1.Object) {
	switch o := o.(type) {
	case *v1.UserDefinedNetwork:
		world.Set(w, world.KindUserNetwork, kube.UserNetwork(o))
	case *v1.ClusterUserDefinedNetwork:
		world.Set(w, world.KindClusterNetwork, kube.ClusterNetwork(o))
	case *cniv1.NetworkAttachmentDefinition:
		world.Set(w, world.KindDefinition, kube.NetworkDefinition(o))
	}
}

func del(w *world.World, e world.Entry) {
	if e.Kind == world.KindDefinition {
		world.Del[networks.Definition](w, e.Kind, e.Key)
	} else {
		world.Del[networks.Request](w, e.Kind, e.Key)
	}
}

// change makes a user's change of an object.
func (c *cluster) change(t failer, k world.Kind, key string, change func(metav1.Object)) {
	t.Helper()
	o := c.objects[world.Entry{Kind: k, Key: key}]
	if o == nil {
		t.Fatalf("no object %d %s", k, key)
	}
	copied := o.(runtime.Object).DeepCopyObject().(metav1.Object)
	change(copied)
	copied.SetGeneration(copied.GetGeneration() + 1)
	c.store(k, copied)
}

// remove deletes an object, as a user does.
func (c *cluster) remove(t failer, k world.Kind, key string) {
	t.Helper()
	c.change(t, k, key, func(o metav1.Object) {
		if o.GetDeletionTimestamp() == nil {
			now := metav1.NewTime(c.now)
			o.SetDeletionTimestamp(&now)
		}
	})
}

// namespace adds or changes a namespace.
func (c *cluster) namespace(name string, own bool, labels map[string]string) {
	c.show(func(w *world.World) {
		w.SetNamespace(&world.Namespace{Name: name, OwnNetwork: own, Labels: labels})
	})
}

func (c *cluster) pod(namespace, name string) {
	c.show(func(w *world.World) { w.SetPod(&world.Pod{Namespace: namespace, Name: name, Node: "n1"}) })
}

// settle decides and writes until there is nothing to do.
func (c *cluster) settle(t failer) {
	t.Helper()
	for range 100 {
		wrote, decided := false, c.decide()
		for _, kind := range []kube.Kind{kube.UserNetworks(), kube.ClusterNetworks(), kube.NetworkDefinitions()} {
			for _, key := range slices.Sorted(slices.Values(c.controller.Keys(kind.Writing().Kind))) {
				if w := kind.Writing().Write(c.controller, key); w != nil {
					c.write(t, kind.Writing().Kind, w.Patch(c.now))
					wrote = true
				}
			}
		}
		if !wrote && !decided {
			return
		}
	}
	t.Fatal("it does not settle")
}

// decide decides once, and says whether there was anything to decide. Nothing is written.
func (c *cluster) decide() bool {
	desired, _ := c.decider.Decide(decide.View{World: c.controller, Now: c.now})
	for _, d := range desired {
		c.controller.Decide(d.Kind, d.Key, d.Decision)
		for _, e := range d.Events {
			if e.Happened || kindFor(d.Kind).Writing().Write(c.controller, d.Key) != nil { // else it is never posted
				c.events = append(c.events, d.Key+": "+e.Message)
			}
		}
	}
	return len(desired) > 0
}

func kindFor(k world.Kind) kube.Kind {
	return map[world.Kind]kube.Kind{world.KindUserNetwork: kube.UserNetworks(),
		world.KindClusterNetwork: kube.ClusterNetworks(), world.KindDefinition: kube.NetworkDefinitions()}[k]
}

// write is what an API server does with a write of the controller.
func (c *cluster) write(t failer, k world.Kind, p kube.Patch) {
	t.Helper()
	key := strings.TrimPrefix(p.Namespace+"/"+p.Name, "/")
	have := c.objects[world.Entry{Kind: k, Key: key}]
	switch {
	case p.Deleted != nil:
		if have == nil || have.GetUID() != *p.Deleted.UID {
			t.Fatalf("%s is deleted, and is another", key)
		}
		c.remove(t, k, key)
		return
	case p.Created == (have != nil):
		t.Fatalf("%s is written and does not exist", key)
	case have == nil:
		o := newObject(k)
		must(t, json.Unmarshal(p.Body, o))
		o.SetCreationTimestamp(metav1.NewTime(c.now))
		c.store(k, o)
		return
	}
	was, err := json.Marshal(have)
	must(t, err)
	now, err := jsonpatch.MergePatch(was, p.Body)
	must(t, err)
	o := newObject(k)
	must(t, json.Unmarshal(now, o))
	if o.GetResourceVersion() != have.GetResourceVersion() {
		return // a conflict
	}
	c.store(k, o)
}

// text is all objects that there are, with what the controller says of them, and the networks of the agent.
func (c *cluster) text() string {
	var lines []string
	for e, o := range c.objects {
		text := o.GetName()
		if o.GetNamespace() != "" {
			text = o.GetNamespace() + "/" + text
		}
		var conditions []metav1.Condition
		switch o := o.(type) {
		case *v1.UserDefinedNetwork:
			text, conditions = "udn "+text, o.Status.Conditions
		case *v1.ClusterUserDefinedNetwork:
			text, conditions = "cudn "+text, o.Status.Conditions
		case *cniv1.NetworkAttachmentDefinition:
			text = "definition " + text + " of " + o.Annotations[v1.AnnotationNetworkName] + " " +
				o.Annotations[v1.AnnotationNetworkID]
		}
		for _, condition := range conditions {
			text += fmt.Sprintf(": %s, %s", condition.Reason, condition.Message)
		}
		if o.GetDeletionTimestamp() != nil {
			text += ", going"
		}
		lines = append(lines, fmt.Sprint(e.Kind)+" "+text)
	}
	slices.Sort(lines)
	for i := range lines {
		_, lines[i], _ = strings.Cut(lines[i], " ")
	}
	for n := range world.Each[world.Network](&c.agent.View, world.KindNetwork) {
		if n.ID > 0 {
			lines = append(lines, fmt.Sprintf("network %d %s %v %v in %v", n.ID, n.Name, n.Subnets, n.Join,
				n.Namespaces))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// failer is a test, of package testing or rapid.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}
