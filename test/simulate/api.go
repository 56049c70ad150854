package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
)

// object is one of the API.
type object interface {
	runtime.Object
	metav1.Object
}

// api is the API server: objects with versions, and who watches them.
type api struct {
	s       *Sim
	version int
	made    int
	objects map[string]map[string]object // by plural, by key
	kinds   map[string]kube.Kind
	clients []*client
	leases  map[string]probe.Lease // of agents, by node
	leader  string                 // the node of the controller that has the Lease
	renewed time.Time              // when it was last renewed
	backup  *backup
	forked  time.Time // when history last went back
	// reportsLost: somebody has put an older report in the place of a node's.
	reportsLost bool
}

var errOutOfReach = errors.New("the API server is out of reach")

func newAPI(s *Sim) *api {
	a := &api{s: s, objects: map[string]map[string]object{}, kinds: map[string]kube.Kind{},
		leases: map[string]probe.Lease{}}
	for _, k := range kube.Followed(all.ServedKinds().AllResources()...) {
		a.kinds[k.Writing().Plural], a.objects[k.Writing().Plural] = k, map[string]object{}
	}
	return a
}

func keyOf(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// get is a copy of an object, or nil.
func get[T object](a *api, plural, key string) (none T) {
	o, is := a.objects[plural][key]
	if !is {
		return none
	}
	return o.DeepCopyObject().(T)
}

// put stores an object, which is the API server's from then on, and returns a copy.
func (a *api) put(plural string, o object) object {
	old := a.objects[plural][keyOf(o)]
	if old == nil {
		a.made++
		o.SetUID(types.UID(fmt.Sprintf("%04x-uid", a.made)))
		o.SetCreationTimestamp(metav1.NewTime(a.s.now.Truncate(time.Second)))
		o.SetGeneration(1)
	}
	a.version++
	o.SetResourceVersion(strconv.Itoa(a.version))
	a.objects[plural][keyOf(o)] = o
	a.tell(plural, old, o, false)
	return o.DeepCopyObject().(object)
}

func (a *api) delete(plural, key string) {
	o, is := a.objects[plural][key]
	if !is {
		return
	}
	delete(a.objects[plural], key)
	a.version++
	gone := o.DeepCopyObject().(object)
	gone.SetResourceVersion(strconv.Itoa(a.version))
	a.tell(plural, o, gone, true)
}

// tell brings a change to all who watch. An object that leaves a field selector is gone for its watch.
func (a *api) tell(plural string, old, o object, gone bool) {
	a.s.verdict.see(plural, o, gone)
	for _, c := range a.clients {
		for _, k := range c.kinds {
			if k.Writing().Plural != plural {
				continue
			}
			was, is := old != nil && selectsObject(k, old), !gone && selectsObject(k, o)
			if was || is {
				c.told(news{kind: k, object: o, gone: !is})
			}
		}
	}
}

func selectsObject(k kube.Kind, o object) bool {
	of := fields.Set{"metadata.name": o.GetName()}
	switch o := o.(type) {
	case *egretv1.EgressNode:
		of["status.formatVersion"] = strconv.Itoa(int(o.Status.FormatVersion))
	case *corev1.Pod:
		of["spec.nodeName"] = o.Spec.NodeName
	}
	return k.SelectsFields(of)
}

// readNow is kube.Source's ReadNow.
func (a *api) readNow(source *kube.Source, k kube.Kind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.ResourceVersion = strconv.Itoa(a.version)
	if err := source.BeginRead(k, "")(list.ResourceVersion); err != nil {
		return err
	}
	objects := a.list(k)
	for _, o := range objects {
		x := o.(object)
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: x.GetNamespace(), Name: x.GetName(), ResourceVersion: x.GetResourceVersion()}})
	}
	if _, err := source.ObserveList(k, "", list); err != nil {
		return err
	}
	for _, o := range objects {
		must(source.Observe(o))
	}
	return nil
}

// list are copies of all objects that a kind selects, by key.
func (a *api) list(k kube.Kind) []any {
	var out []any
	all := a.objects[k.Writing().Plural]
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if selectsObject(k, all[key]) {
			out = append(out, all[key].DeepCopyObject())
		}
	}
	return out
}

// patch is a merge patch (RFC 7386), of the status alone or of all but the status.
func (a *api) patch(p kube.Patch) (version string, err error) {
	key := p.Name
	if p.Namespace != "" {
		key = p.Namespace + "/" + p.Name
	}
	resource := schema.GroupResource{Resource: p.Plural}
	o := a.objects[p.Plural][key]
	if o == nil {
		return "", apierrors.NewNotFound(resource, key)
	}
	var change map[string]any
	if err := json.Unmarshal(p.Body, &change); err != nil {
		return "", err
	}
	metadata, _ := change["metadata"].(map[string]any)
	if seen, is := metadata["resourceVersion"]; is && seen != o.GetResourceVersion() {
		return "", apierrors.NewConflict(resource, key, fmt.Errorf("is at %s, not %v", o.GetResourceVersion(), seen))
	}
	if p.Subresource == "status" {
		change = map[string]any{"status": change["status"]}
	} else {
		delete(change, "status")
	}
	return a.put(p.Plural, merged(o, change)).GetResourceVersion(), nil
}

func merged(o object, change map[string]any) object {
	text, err := json.Marshal(o)
	var all map[string]any
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err == nil {
		text, err = json.Marshal(merge(all, change))
	}
	out := o.DeepCopyObject().(object)
	fresh := newLike(out)
	if err == nil {
		err = json.Unmarshal(text, fresh)
	}
	if err != nil {
		panic(err) // the API's own types
	}
	return fresh
}

func merge(all, change map[string]any) map[string]any {
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range change {
		deeper, is := value.(map[string]any)
		switch {
		case value == nil:
			delete(all, key)
		case is:
			have, _ := all[key].(map[string]any)
			all[key] = merge(have, deeper)
		default:
			all[key] = value
		}
	}
	return all
}

// news is what a watch brings: an object, its end, or a bookmark, which has no object and says that all has been
// brought up to a version.
type news struct {
	kind    kube.Kind
	object  object
	gone    bool
	version string
}

// bookmarks are sent a minute apart.
const bookmarks = time.Minute

func (a *api) sendBookmarks() {
	for _, c := range a.clients {
		for _, k := range c.kinds {
			c.told(news{kind: k, version: strconv.Itoa(a.version)})
		}
	}
}

// client is a process' watches, one a kind: each brings what is new in order, late.
type client struct {
	s       *Sim
	name    string
	process *process
	source  *kube.Source
	kinds   []kube.Kind
	reached map[string]time.Time // when the last of a watch arrives
	lists   map[string]int       // how often a watch has begun again with a list
	waiting []news               // that came while the process was cut off
	cutAt   time.Time
	ended   bool   // its watches have, while the process hung
	missed  []news // of the history since then
	lost    string // a watch that has seen more than this version lists when the process goes on; "": each goes on
}

// follow begins with the lists of all kinds.
func (a *api) follow(name string, p *process, source *kube.Source, kinds []kube.Kind) *client {
	c := &client{s: a.s, name: name, process: p, source: source, kinds: kinds, reached: map[string]time.Time{},
		lists: map[string]int{}}
	source.TellEnded(c.listAgain)
	a.clients = append(a.clients, c)
	c.listAll()
	return c
}

// end ends all watches.
func (c *client) end() {
	c.s.api.clients = slices.DeleteFunc(c.s.api.clients, func(o *client) bool { return o == c })
	c.source = nil
}

func (c *client) listAll() {
	for _, k := range c.kinds {
		c.s.at(c.arrival(k), func() { c.list(k) })
	}
}

// list takes the whole list, as it is by then.
func (c *client) list(k kube.Kind) {
	if c.source == nil {
		return
	}
	if c.process.cut {
		c.s.after(time.Second, func() { c.list(k) })
		return
	}
	c.lists[watchName(k)]++
	must(c.source.Store(k).Replace(c.s.api.list(k), strconv.Itoa(c.s.api.version)))
	c.process.wake()
}

// listAgain has the watch of a kind begin again: its lateness is over.
func (c *client) listAgain(k kube.Kind) {
	delete(c.reached, watchName(k))
	c.s.at(c.arrival(k), func() { c.list(k) })
}

// watchName tells the two watches of EgressNodes apart.
func watchName(k kube.Kind) string {
	if !k.SelectsFields(fields.Set{"spec.nodeName": "any"}) {
		return k.Writing().Plural + " (own)"
	}
	return k.Writing().Plural
}

// arrival is when what is sent now arrives: a watch keeps the order.
func (c *client) arrival(k kube.Kind) time.Time {
	plural := watchName(k)
	at := c.s.now.Add(c.s.within(c.s.pace.Watch, c.name+" watches "+plural))
	if at.Before(c.reached[plural]) {
		at = c.reached[plural]
	}
	c.reached[plural] = at
	return at
}

// late has nothing of a kind arrive for a time: events keep their order.
func (c *client) late(plural string, d time.Duration) {
	if until := c.s.now.Add(d); until.After(c.reached[plural]) {
		c.reached[plural] = until
	}
}

// told has news arrive, unless a list does before that: then the watch begins with what the list has.
func (c *client) told(n news) {
	if c.ended {
		c.missed = append(c.missed, n)
		return
	}
	watch := watchName(n.kind)
	lists := c.lists[watch]
	c.s.at(c.arrival(n.kind), func() {
		if c.lists[watch] == lists {
			c.receive(n)
		}
	})
}

func (c *client) receive(n news) {
	switch {
	case c.source == nil || c.ended:
		return
	case c.process.cut:
		c.waiting = append(c.waiting, n)
		return
	}
	store := c.source.Store(n.kind)
	bookmarked, follows := store.(interface{ UpdateResourceVersion(string) })
	switch {
	case n.object == nil && follows:
		bookmarked.UpdateResourceVersion(n.version)
	case n.object == nil:
	case n.gone:
		must(store.Delete(n.object.DeepCopyObject()))
	default:
		must(store.Update(n.object.DeepCopyObject()))
	}
	c.process.wake()
}

// cutOff has nothing come and go any more.
func (c *client) cutOff() { c.process.cut, c.cutAt = true, c.s.now }

// restore ends that. After a while connections are given up, and what is there then is listed.
func (c *client) restore() {
	c.process.cut = false
	waiting := c.waiting
	c.waiting = nil
	if c.s.now.Sub(c.cutAt) > kube.Silent {
		c.listAll()
		return
	}
	for _, n := range waiting {
		c.told(n)
	}
}

// silence is for how long the API server has said nothing.
func (c *client) silence() time.Duration {
	if !c.process.cut {
		return 0
	}
	return c.s.now.Sub(c.cutAt)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// newLike is an object of the same type, with nothing in it.
func newLike(o object) object { return reflect.New(reflect.TypeOf(o).Elem()).Interface().(object) }

var quiet = slog.New(slog.DiscardHandler)
