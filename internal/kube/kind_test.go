package kube_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// The types of a kind that nothing in this module knows: Lamp of the API, and lamp of a world.
type Lamp struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Wanted, Lit string
}

// DeepCopyObject is what the API's types have.
func (l *Lamp) DeepCopyObject() runtime.Object { c := *l; return &c }

type lamp struct{ name, uid, version, wanted, lit string }

// Its two kinds in touches: one, and the list of all.
const (
	kindLamp  world.Kind = 200
	kindLamps world.Kind = 201
)

// keepLamps is its line in world.keepKinds.
func keepLamps(w *world.World) {
	world.Keep(w, world.Spec[lamp]{One: kindLamp, All: kindLamps, Object: "Lamp",
		Key:  func(l *lamp) string { return l.name },
		Same: func(a, b *lamp) bool { return a.wanted == b.wanted && a.lit == b.lit },
		Decides: world.Decides[lamp]{
			UID: func(l *lamp) string { return l.uid },
			Over: func(shown *lamp, d world.Decision) *lamp {
				out := *shown
				out.lit = d.Status.(string)
				return &out
			},
			Same: func(a, b *lamp) bool { return a.lit == b.lit },
		}})
}

// lamps is how it is followed, converted and written.
func lamps() kube.Kind {
	return kube.Resource[*Lamp, lamp]{
		Plural: "lamps", Example: &Lamp{},
		Convert: func(o *Lamp) *lamp { return &lamp{o.Name, string(o.UID), o.ResourceVersion, o.Wanted, o.Lit} },
		Set:     func(w *world.World, l *lamp) { world.Set(w, kindLamp, l) },
		Del:     func(w *world.World, key string) { world.Del[lamp](w, kindLamp, key) },
		Written: kube.Written{Kind: kindLamp, APIVersion: "toys/v1", Object: "Lamp",
			Write: kube.Writing(kindLamp, func(shown, should *lamp) *kube.Write {
				return &kube.Write{Version: shown.version, Patch: func(time.Time) kube.Patch {
					return kube.Patch{Plural: "lamps", Name: shown.name, Body: []byte(should.lit)}
				}}
			})},
	}
}

// lighter is its decider.
type lighter struct{ decide.IgnoresChanges }

func (lighter) Decide(v decide.View) (out []decide.Desired, again time.Time) {
	for l := range world.Each[lamp](&v.View, kindLamp) {
		decision := world.Decision{UID: l.uid, Status: l.wanted}
		out = append(out, decide.Desired{Kind: kindLamp, Key: l.name, Decision: decision})
	}
	return out, again
}

// TestAKindIsRegisteredOnce: what is above is all that a new kind needs to be followed, read, decided and written.
func TestAKindIsRegisteredOnce(t *testing.T) {
	w := world.New("", &world.Config{})
	keepLamps(w)
	source := kube.NewSource(nil, slog.New(slog.DiscardHandler), lamps())
	var changed []world.Entry
	w.FollowChanges(func(e world.Entry) { changed = append(changed, e) })
	show := func(version, lit string) {
		t.Helper()
		changed = nil
		o := &Lamp{Wanted: "on", Lit: lit}
		o.Name, o.UID, o.ResourceVersion = "hall", "u", version
		if err := source.Observe(o); err != nil {
			t.Fatal(err)
		}
		(<-source.Changes())(w)
	}
	hall := world.Entry{Kind: kindLamp, Key: "hall"}
	if o := w.Object(kindLamp, "hall"); o.String() != "Lamp/hall" {
		t.Errorf("its rows are owned by %s", o)
	}
	if show("5", "off"); !slices.Contains(changed, hall) || !w.Has(kindLamp, "hall") {
		t.Errorf("changed %v", changed)
	}
	decideAll(w, lighter{})
	told := false
	v := world.NewReader(func() { told = true }).Reading(w)
	if l := world.Get[lamp](v, kindLamp, "hall"); l.lit != "on" {
		t.Errorf("decided: %+v", l)
	}
	pending := func() *kube.Write { return lamps().Writing().Write(w, "hall") }
	write := pending()
	if write == nil || write.Version != "5" || string(write.Patch(time.Time{}).Body) != "on" {
		t.Fatalf("to be written: %+v", write)
	}
	show("6", "on")
	if len(changed) > 0 || len(slices.Collect(w.ShownAnew())) != 1 || pending() != nil {
		t.Errorf("the API shows what was decided: changed %v", changed)
	}
	if show("7", "off"); len(changed) > 0 || pending() == nil {
		t.Errorf("somebody else writes it: changed %v", changed)
	}
	if w.Undecide(); !told || world.Get[lamp](v, kindLamp, "hall").lit != "off" {
		t.Error("nothing is decided any more")
	}
}

func decideAll(w *world.World, d decide.Decider) {
	desired, _ := d.Decide(decide.View{World: w})
	for _, one := range desired {
		w.Decide(one.Kind, one.Key, one.Decision)
	}
}
