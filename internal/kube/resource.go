package kube

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/internal/world"
)

// Resource is all that must be said of a kind of object of the API, O, to follow it and to write it: T is what the
// world has of it.
type Resource[O runtime.Object, T any] struct {
	// Plural names the kind in the API's paths: "nodes".
	Plural string
	// Client is that of the kind's group, and Example an object with nothing in it.
	Client  func(*Clients) rest.Interface
	Example O
	// Selector says by labels which objects are followed; "": all.
	Selector string
	// Fields selects the objects by their fields; nil: all. Served is a further part of it that an API server without
	// the kind's newest definition refuses: it is left out then.
	Fields, Served fields.Selector
	// Convert makes of an object what the world has of it.
	Convert func(O) *T
	// Set and Del bring it into the world, and take it away.
	Set func(*world.World, *T)
	Del func(w *world.World, key string)
	// Written is of the kinds that the controller writes.
	Written Written
	// Claims says that objects of the kind decide which objects have claims to a pod's packets (Source.Seen).
	Claims bool
	// ControllersOnly says that controllers alone follow the kind: agents follow what controllers make of it.
	ControllersOnly bool
	// Restless says that objects of the kind change every few seconds, whatever happens. A watch of it that is late for
	// a moment says nothing of the API server's history (Source.Newest).
	Restless bool

	// intern makes equal strings the same, of kinds with many objects.
	intern func(*T, *interner)
	// join replaces Set and Del for kinds of which several objects make one object of the world.
	join func(*join) (set func(*world.World, *T), del func(*world.World, string))
}

// Written is how objects of a kind are written.
type Written struct {
	Kind   world.Kind
	Plural string // as the Resource's
	// APIVersion and Object name the kind in Events.
	APIVersion, Object string
	// Write is the write that makes an object what was decided of it; nil if it is that already.
	Write func(w *world.World, key string) *Write
}

// Write makes an object what it should be.
type Write struct {
	// Version is that of the object as it was seen.
	Version string
	// Urgent: packets wait for it. Else it is words for people.
	Urgent bool
	// Rewords: only messages of conditions become different.
	Rewords bool
	// Patch is the request, when it is sent at a time.
	Patch func(now time.Time) Patch
}

// Kind is a Resource of any types.
type Kind interface {
	pluralName() string
	restClient(*Clients) rest.Interface
	exampleObject() runtime.Object
	labelSelector() string
	fieldSelectors() (all, served fields.Selector)
	isObject(obj any) bool
	decidesClaims() bool
	isControllersOnly() bool
	isRestless() bool
	// SelectsFields reports whether the watch of the kind brings an object with such fields.
	SelectsFields(fields.Set) bool
	// Writing is how its objects are written.
	Writing() Written
	// convertAndRemove says how an object comes into the world, and how it goes.
	convertAndRemove(*Source) (convert func(obj any) Change, remove func(key string) Change)
}

func (r Resource[O, T]) pluralName() string { return r.Plural }

// Writing is how objects of the kind are written.
func (r Resource[O, T]) Writing() Written {
	w := r.Written
	w.Plural = r.Plural
	return w
}

func (r Resource[O, T]) restClient(c *Clients) rest.Interface { return r.Client(c) }

func (r Resource[O, T]) exampleObject() runtime.Object { return r.Example }

func (r Resource[O, T]) labelSelector() string { return r.Selector }

func (r Resource[O, T]) fieldSelectors() (all, served fields.Selector) {
	return cmp.Or(r.Fields, fields.Everything()), cmp.Or(r.Served, fields.Everything())
}

// SelectsFields reports whether the watch of the kind brings an object with such fields.
func (r Resource[O, T]) SelectsFields(of fields.Set) bool {
	return fields.AndSelectors(r.fieldSelectors()).Matches(of)
}

func (r Resource[O, T]) decidesClaims() bool { return r.Claims }

func (r Resource[O, T]) isControllersOnly() bool { return r.ControllersOnly }

func (r Resource[O, T]) isRestless() bool { return r.Restless }

func (r Resource[O, T]) isObject(obj any) bool {
	_, is := obj.(O)
	return is
}

// selectsKey says whether an object of that key is one that the kind follows, as far as its name tells.
func selectsKey(k Kind, key string) bool {
	_, name := splitKey(key)
	all, _ := k.fieldSelectors()
	return all.Matches(fields.Set{fieldName: name})
}

// fieldName is the field that each object has.
const fieldName = "metadata.name"

func (r Resource[O, T]) convertAndRemove(s *Source) (convert func(obj any) Change, remove func(key string) Change) {
	set, del := r.Set, r.Del
	if r.join != nil {
		set, del = r.join(s.join)
	}
	return func(obj any) Change {
		t := r.Convert(obj.(O))
		if r.intern != nil {
			s.withInterner(func(i *interner) { r.intern(t, i) })
		}
		return func(w *world.World) { set(w, t) }
	}, removeChange(del)
}

func removeChange(del func(w *world.World, key string)) func(string) Change {
	return func(key string) Change { return func(w *world.World) { del(w, key) } }
}

// Writing is Written.Write of a kind that has a write for an object as the API shows it that should be another.
func Writing[T any](k world.Kind, write func(shown, should *T) *Write) func(*world.World, string) *Write {
	return func(w *world.World, key string) *Write {
		shown, should := world.Undone[T](w, k, key)
		if should == nil {
			return nil
		}
		return write(shown, should)
	}
}

// Reference names an object of a kind in an Event. Kubernetes' own components use a Node's name as its UID, and kubectl
// describe looks for that.
func (k Written) Reference(key, uid string) corev1.ObjectReference {
	namespace, name := splitKey(key)
	if k.Kind == world.KindNode {
		uid = name
	}
	return corev1.ObjectReference{
		APIVersion: k.APIVersion, Kind: k.Object, Namespace: namespace, Name: name, UID: types.UID(uid),
	}
}
