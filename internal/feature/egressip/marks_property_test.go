package egressip_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	deciding "github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// marking is an API server in memory, with two controllers that decide about marks, of which one leads.
type marking struct {
	t           failer
	objects     map[string]*v1.EgressIP
	controllers [2]*markingController
	leads       int
	underway    []func() // writes that the API server has not received yet
	version     int
	clock       time.Time
	uids        []types.UID // that are still to be used
	events      []string

	wrote  map[types.UID]int // the mark that controllers gave an object
	oldest map[int]time.Time // when the oldest object came that ever had a mark
}

// markingController follows the API by a watch that may be late.
type markingController struct {
	w      *world.World
	marker *egressip.Marker
	watch  []func(*world.World)
	sent   map[string]bool // by name: a write is under way
}

// failer is a test, of package testing or rapid.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// crowdedUIDs are UIDs of which many ask for the same marks.
var crowdedUIDs = func() (out []types.UID) {
	for i := 0; len(out) < 60; i++ {
		uid := fmt.Sprint("uid-", i)
		if mark := egressip.MarkOf(uid); mark < world.FirstMark+3 || mark == world.LastMark {
			out = append(out, types.UID(uid))
		}
	}
	return out
}()

func newMarking(t failer) *marking {
	m := &marking{t: t, objects: map[string]*v1.EgressIP{}, clock: time.Unix(1_000_000, 0).UTC(), uids: crowdedUIDs,
		wrote: map[types.UID]int{}, oldest: map[int]time.Time{}}
	for i := range m.controllers {
		m.controllers[i] = &markingController{w: world.New("", compiletest.Config(world.SharedGateway))}
		m.network(i, true)
	}
	m.lead(0)
	return m
}

func (m *marking) network(i int, is bool) {
	w := m.controllers[i].w
	if w.DelNetwork("blue"); is {
		w.SetNetwork(blue())
	}
}

// lead begins a controller's term. What the other one has sent is still under way.
func (m *marking) lead(i int) {
	c := m.controllers[i]
	c.w.Undecide()
	c.marker, c.sent = egressip.NewMarker(), map[string]bool{}
	c.w.FollowChanges(c.marker.NoteChanged)
	m.leads = i
}

// put stores a new version of an object, and shows it to both watches.
func (m *marking) put(o *v1.EgressIP) {
	m.version++
	o.ResourceVersion = fmt.Sprint(m.version)
	m.objects[o.Name] = o
	if mark := kube.EgressIP(o).Mark; mark != 0 {
		if first, is := m.oldest[mark]; !is || o.CreationTimestamp.Time.Before(first) {
			m.oldest[mark] = o.CreationTimestamp.Time
		}
	}
	m.show(func(w *world.World) { w.SetEgressIP(kube.EgressIP(o)) })
}

func (m *marking) show(change func(*world.World)) {
	for _, c := range m.controllers {
		c.watch = append(c.watch, change)
	}
}

// create makes an EgressIP, a second younger than the one before it.
func (m *marking) create(name string) {
	if m.objects[name] != nil || len(m.uids) == 0 {
		return
	}
	m.clock = m.clock.Add(time.Second)
	o := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name, UID: m.uids[0], Generation: 1,
		CreationTimestamp: metav1.NewTime(m.clock)}}
	m.uids = m.uids[1:]
	m.put(o)
}

func (m *marking) remove(name string) {
	if m.objects[name] != nil {
		delete(m.objects, name)
		m.show(func(w *world.World) { w.DelEgressIP(name) })
	}
}

// overwrite gives an object a mark as nobody may whom admission policies see.
func (m *marking) overwrite(name, mark string) {
	if o := m.objects[name]; o != nil {
		o = o.DeepCopy()
		if o.Annotations = nil; mark != "" {
			o.Annotations = map[string]string{v1.AnnotationEgressIPMark: mark}
		}
		m.put(o)
	}
}

// restore has the API show what it was, and keeps what controllers can know of marks that are lost.
func (m *marking) restore(backup map[string]*v1.EgressIP) {
	for name := range m.objects {
		if backup[name] == nil {
			m.remove(name)
		}
	}
	for _, o := range backup {
		m.put(o.DeepCopy())
	}
	clear(m.wrote)
}

// deliver brings the next things to a controller that the API shows.
func (m *marking) deliver(i, n int) {
	c := m.controllers[i]
	for range min(n, len(c.watch)) {
		c.watch[0](c.w)
		c.watch = c.watch[1:]
		for e := range c.w.ShownAnew() {
			c.marker.Seen(deciding.View{World: c.w, Now: m.clock}, e)
		}
	}
}

// decide has the leader decide, and send what it then has to write.
func (m *marking) decide() (busy bool) {
	c := m.controllers[m.leads]
	desired, _ := c.marker.Decide(deciding.View{World: c.w, Now: m.clock})
	for _, d := range desired {
		c.w.Decide(d.Kind, d.Key, d.Decision)
		for _, e := range d.Events {
			m.events = append(m.events, d.Key+": "+e.Reason+": "+e.Message)
		}
	}
	for _, name := range c.w.EgressIPs() {
		w := kube.EgressIPs().Writing().Write(c.w, name)
		if w == nil || c.sent[name] {
			continue
		}
		busy, c.sent[name] = true, true
		sent := c.sent
		m.underway = append(m.underway, func() {
			m.write(name, w.Patch(m.clock))
			delete(sent, name)
		})
	}
	return busy || len(desired) > 0
}

// write is what the API server does with a controller's write.
func (m *marking) write(name string, p kube.Patch) {
	have := m.objects[name]
	if have == nil {
		return
	}
	var sent struct{ Metadata metav1.ObjectMeta }
	before, _ := json.Marshal(have)
	after, err := jsonpatch.MergePatch(before, p.Body)
	o := &v1.EgressIP{}
	if json.Unmarshal(p.Body, &sent) != nil || err != nil || json.Unmarshal(after, o) != nil {
		m.t.Fatalf("patch %s: %v", p.Body, err)
	}
	if sent.Metadata.ResourceVersion != have.ResourceVersion {
		return // a conflict
	}
	if p.Subresource == "" {
		m.noteMark(o)
	}
	m.put(o)
}

// noteMark checks that a controller changes a mark only where an older object had it.
func (m *marking) noteMark(o *v1.EgressIP) {
	mark, err := strconv.Atoi(o.Annotations[v1.AnnotationEgressIPMark])
	if err != nil || mark < world.FirstMark || mark > world.LastMark {
		m.t.Fatalf("a controller writes mark %v", o.Annotations)
	}
	was := m.wrote[o.UID]
	if was != 0 && was != mark && !m.oldest[was].Before(o.CreationTimestamp.Time) {
		m.t.Fatalf("mark %d of %s becomes %d\n%s", was, o.Name, mark, m.text())
	}
	m.wrote[o.UID] = mark
}

// receive has the API server receive one of the writes that are under way.
func (m *marking) receive(i int) {
	one := m.underway[i]
	m.underway = slices.Delete(m.underway, i, i+1)
	one()
}

// settle lets all arrive, and the leader decide, until there is nothing to do.
func (m *marking) settle() {
	m.t.Helper()
	for range 100 {
		for len(m.underway) > 0 {
			m.receive(0)
		}
		for i, c := range m.controllers {
			m.deliver(i, len(c.watch))
		}
		if !m.decide() {
			return
		}
	}
	m.t.Fatalf("it does not settle\n%s", m.text())
}

// checkMarks checks that each EgressIP has a mark of its own.
func (m *marking) checkMarks() {
	m.t.Helper()
	owner := map[int]string{}
	for name, o := range m.objects {
		e := kube.EgressIP(o)
		if other := owner[e.Mark]; e.Mark == 0 || other != "" {
			m.t.Fatalf("%s has mark %d, as has %q\n%s", name, e.Mark, other, m.text())
		}
		owner[e.Mark] = name
	}
}

func (m *marking) text() (out string) {
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		o := m.objects[name]
		out += fmt.Sprintf("%s %s mark %s, would have %d\n", name, o.UID, o.Annotations[v1.AnnotationEgressIPMark],
			egressip.MarkOf(string(o.UID)))
	}
	return out
}

// TestMarksStay: an EgressIP keeps its mark, and no other has it, whichever controller leads, however late its watch
// and the writes of the previous leader are. That is so again after somebody wrote marks, and after a restore.
func TestMarksStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, backup := newMarking(t), map[string]*v1.EgressIP{}
		attacked := rapid.Bool().Draw(t, "attacked")
		name := func() string { return fmt.Sprint("e", rapid.IntRange(0, 5).Draw(t, "object")) }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 12).Draw(t, "step") {
			case 0, 1:
				m.create(name())
			case 2:
				m.remove(name())
			case 3, 4:
				m.deliver(rapid.IntRange(0, 1).Draw(t, "controller"), rapid.IntRange(1, 4).Draw(t, "events"))
			case 5, 6:
				m.decide()
			case 7, 8:
				if n := len(m.underway); n > 0 {
					m.receive(rapid.IntRange(0, n-1).Draw(t, "write"))
				}
			case 9:
				m.lead(rapid.IntRange(0, 1).Draw(t, "leader"))
			case 10:
				m.network(m.leads, rapid.Bool().Draw(t, "network"))
			case 11:
				if attacked {
					m.overwrite(name(), rapid.SampledFrom([]string{"", "50000", "50001", "50002", "49999",
						"x"}).Draw(t, "mark"))
				}
			case 12:
				if attacked && rapid.Bool().Draw(t, "restored") {
					m.restore(backup)
				}
				backup = maps.Clone(m.objects)
			}
		}
		m.network(m.leads, true)
		m.settle()
		m.checkMarks()
		m.lead(1 - m.leads)
		m.network(m.leads, true)
		before := m.text()
		if m.settle(); m.text() != before {
			t.Fatalf("another controller makes of\n%s\nthis:\n%s", before, m.text())
		}
	})
}
