package ovn

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestElementsOneByOne: members come and go, sets do, the database fails and others meddle; the plane looks at what
// changed only, and the database holds what the plan says all the same.
func TestElementsOneByOne(t *testing.T) {
	env := ovntest.StartDatabases(t)
	proxy := newProxy(t, env.NB)
	p := NewNB("unix:"+proxy.path, Options{Hold: -1, Log: quiet()})
	defer p.Close()
	rapid.Check(t, func(rt *rapid.T) {
		e := &elements{env: env, plane: p, proxy: proxy, state: plan.New(), rows: map[string]*plan.Rows{}}
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			e.step(rt)
		}
		e.check(rt)
	})
}

type elements struct {
	env   *ovntest.Env
	plane *Plane
	proxy *proxy
	state *plan.State
	rows  map[string]*plan.Rows // by owner
}

func (e *elements) step(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		e.proxy.cut.Store(true)
	case 1:
		if sets := strings.Fields(e.env.NBCtl("--bare", "--columns=name", "list", "Address_Set")); len(sets) > 0 {
			e.env.NBCtl("clear", "Address_Set", rapid.SampledFrom(sets).Draw(t, "emptied by hand"), "addresses")
		}
	case 2, 3:
		_ = e.plane.Grow(t.Context(), e.state)
	default:
		e.replace(t)
	}
}

// replace gives an owner other rows: a set that it brings, or members of sets that others may bring.
func (e *elements) replace(t *rapid.T) {
	owner := fmt.Sprint("owner", rapid.IntRange(0, 3).Draw(t, "owner"))
	old, now := e.rows[owner], &plan.Rows{}
	if old == nil {
		old = &plan.Rows{}
	}
	for _, set := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "sets") {
		now.AddSet(set)
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 9), 0, 4).Draw(t, "members") {
			now.AddElem(set, fmt.Sprint("10.0.0.", n))
		}
	}
	e.state.Replace(planetest.Owner(owner), old, now)
	e.rows[owner] = now
}

// check compares the database with the plan after undisturbed passes: the first may still meet the cut connection, or
// come before the database has told the plane what somebody did.
func (e *elements) check(t *rapid.T) {
	e.proxy.cut.Store(false)
	want := e.want()
	var have map[string][]string
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		_ = e.plane.Grow(t.Context(), e.state)
		if have = e.have(); fmt.Sprint(have) == fmt.Sprint(want) {
			return
		}
	}
	t.Fatalf("have %v, want %v", have, want)
}

func (e *elements) want() map[string][]string {
	want := map[string][]string{}
	for id := range e.state.NB.Rows() {
		want[id.Name] = []string{}
	}
	for x := range e.state.SetElems.Rows() {
		want[x.Set] = append(want[x.Set], x.Addr)
	}
	for _, members := range want {
		slices.Sort(members)
	}
	return want
}

func (e *elements) have() map[string][]string {
	have := map[string][]string{}
	for _, set := range strings.Fields(e.env.NBCtl("--bare", "--columns=name", "list", "Address_Set")) {
		members := strings.Fields(strings.Trim(strings.ReplaceAll(e.env.NBCtl("--bare", "--columns=addresses", "find",
			"Address_Set", "name="+set), ",", " "), "[]"))
		slices.Sort(members)
		have[set] = append([]string{}, members...)
	}
	return have
}
