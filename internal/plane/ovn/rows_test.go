package ovn

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
)

// TestRowsOneByOne: rows of all kinds come, change and go, some are refused, the database fails, others meddle, and the
// process starts anew; the plane looks at what changed only. After undisturbed passes a comparison of everything finds
// nothing, and another pass writes nothing.
func TestRowsOneByOne(t *testing.T) {
	env := ovntest.StartDatabases(t)
	h := &rowHistory{env: env, proxy: newProxy(t, env.NB)}
	rapid.Check(t, func(rt *rapid.T) {
		h.restart()
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			h.step(rt)
		}
		h.check(rt)
		h.plane.Close()
	})
}

type rowHistory struct {
	env   *ovntest.Env
	proxy *proxy
	plane *Plane
	state *plan.State
	rows  map[string]*plan.Rows // by owner
}

// restart is a new process.
func (h *rowHistory) restart() {
	if h.plane != nil {
		h.plane.Close()
	}
	h.plane = NewNB("unix:"+h.proxy.path, Options{Hold: -1, Log: quiet()})
	h.state, h.rows = plan.New(), map[string]*plan.Rows{}
	h.replace("base", baseRows("router", "other"))
}

// baseRows are routers, and what others' rows refer to.
func baseRows(routers ...string) *plan.Rows {
	r := &plan.Rows{}
	for _, name := range routers {
		r.AddNB(plan.Router(name), plan.RowID{}, plan.Cols{"name": name})
		port := plan.RowID{Table: "Logical_Router_Port", Name: "to-" + name}
		r.AddNB(port, plan.Router(name), plan.Cols{"name": "to-" + name, "mac": "0a:58:00:00:00:01",
			"networks": []string{"10.9.0.1/24"}})
	}
	r.AddNB(groupID, plan.RowID{}, plan.Cols{})
	r.AddNB(plan.Switch("switch"), plan.RowID{}, plan.Cols{"name": "switch"})
	r.AddPortGroup("ports-0")
	r.AddPortGroup("ports-1")
	return r
}

func (h *rowHistory) replace(owner string, now *plan.Rows) {
	old := h.rows[owner]
	if old == nil {
		old = &plan.Rows{}
	}
	h.state.Replace(plan.Owner{Feature: owner}, old, now)
	h.rows[owner] = now
}

func (h *rowHistory) step(t *rapid.T) {
	switch rapid.IntRange(0, 19).Draw(t, "step") {
	case 0:
		h.proxy.cut.Store(true)
	case 1:
		h.env.NBCtl("--if-exists", "clear", "Logical_Router", "router", "policies")
		h.env.NBCtl("--if-exists", "clear", "Port_Group", "ports_0", "ports")
	case 2:
		h.env.NBCtl("--if-exists", "lr-del", "router")
	case 3:
		h.restart()
	case 4:
		routers := [][]string{{"router"}, {"other"}, {"router", "other"}}
		h.replace("base", baseRows(rapid.SampledFrom(routers).Draw(t, "routers")...))
	case 5, 6, 7, 8:
		_ = h.plane.Grow(t.Context(), h.state)
	default:
		h.replace(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner"), randomNB(t))
	}
}

func randomNB(t *rapid.T) *plan.Rows {
	r := &plan.Rows{}
	for range rapid.IntRange(0, 3).Draw(t, "rows") {
		name := fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "name"))
		router := rapid.SampledFrom([]string{"router", "other"}).Draw(t, "router")
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			action := rapid.SampledFrom([]string{"allow", "drop", "allow", "drop", "bounce"}).Draw(t, "action")
			r.AddNB(plan.RowID{Table: "Logical_Router_Policy", Name: name}, plan.Router(router),
				plan.Cols{"priority": 100, "match": "ip4", "action": action})
		case 2:
			r.AddMACBinding("to-"+router, "10.9.0.1"+name, "0a:58:00:00:00:0"+name)
		case 3:
			r.AddNB(plan.RowID{Table: "Load_Balancer", Name: name}, groupID, plan.Cols{"name": name})
		default:
			var groups []plan.RowID
			for i := range rapid.IntRange(0, 2).Draw(t, "groups") {
				groups = append(groups, plan.RowID{Table: "Port_Group", Name: fmt.Sprint("ports-", i)})
			}
			plan.Add(&r.NB, plan.RowID{Table: "Logical_Switch_Port", Name: name}, plan.Row{
				Parent: plan.Switch("switch"), Groups: groups, Cols: plan.Cols{"name": name}})
		}
	}
	return r
}

// check has all that rows refer to there, and nothing that the database refuses.
func (h *rowHistory) check(t *rapid.T) {
	h.proxy.cut.Store(false)
	h.replace("base", baseRows("router", "other"))
	for owner, r := range h.rows {
		h.replace(owner, withoutRefused(r))
	}
	fresh := NewNB(h.env.NB, Options{Hold: -1, Log: quiet()})
	defer fresh.Close()
	var differences []plane.Difference
	var grown, err error
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		grown = h.plane.Grow(t.Context(), h.state)
		differences, err = fresh.Compare(t.Context(), h.state)
		if grown == nil && err == nil && len(differences) == 0 {
			h.writesNothing(t)
			return
		}
	}
	t.Fatalf("after undisturbed passes: %v, %v; grown: %v", differences, err, grown)
}

func withoutRefused(r *plan.Rows) *plan.Rows {
	now := &plan.Rows{NB: map[plan.RowID]plan.Row{}}
	for id, row := range r.NB {
		if row.Cols["action"] != "bounce" {
			now.NB[id] = row
		}
	}
	return now
}

func (h *rowHistory) writesNothing(t *rapid.T) {
	before := h.proxy.txns.Load()
	if err := h.plane.Grow(t.Context(), h.state); err != nil || h.proxy.txns.Load() != before {
		t.Fatalf("another pass wrote %d times: %v", h.proxy.txns.Load()-before, err)
	}
}

// TestRefusedAgain: a row that is refused before it is written is refused each time, though nothing changes.
func TestRefusedAgain(t *testing.T) {
	p := newNB(t, ovntest.StartDatabases(t), -1)
	s, r := plan.New(), &plan.Rows{}
	r.AddNB(plan.RowID{Table: "Nonsense", Name: "n"}, plan.RowID{}, plan.Cols{})
	s.Replace(plan.Owner{Feature: "bad"}, &plan.Rows{}, r)
	for range 2 {
		if refused := plane.Refusals(p.Grow(t.Context(), s)); len(refused) != 1 || refused[0].Owner.Feature != "bad" {
			t.Errorf("refused: %v", refused)
		}
	}
}

// routers is a session, without a database, that has applied so many rows.
type routers struct {
	t       testing.TB
	session *session
	state   *plan.State
	one     *plan.Rows // the row that changes
	enabled bool
	found   int // rows that the last pass looked at
}

func newRouters(t testing.TB, n int) *routers {
	var db ovsdb.DatabaseSchema
	if err := json.Unmarshal([]byte(fuzzedSchema), &db); err != nil {
		t.Fatal(err)
	}
	s := &session{m: newMirror(newSchema(db)), applied: map[plan.RowID]*wanted{}, changed: func() {}}
	s.followTables(dbNorth)
	r := &routers{t: t, session: s, state: plan.New(), one: routerRow("0", false)}
	r.state.Replace(plan.Owner{Feature: "one"}, &plan.Rows{}, r.one)
	for i := range n {
		name := fmt.Sprint(i)
		r.notice(name, fmt.Sprintf(`{"insert":{"name":%q,"external_ids":["map",[[%q,%q],[%q,%q]]]}}`,
			name, keyOwner, owner, keyID, name))
		if i > 0 {
			r.state.Replace(plan.Owner{Feature: name}, &plan.Rows{}, routerRow(name, false))
		}
	}
	r.pass(0, func() {})
	return r
}

func routerRow(name string, enabled bool) *plan.Rows {
	cols := plan.Cols{"name": name}
	if enabled {
		cols["enabled"] = true
	}
	return &plan.Rows{NB: map[plan.RowID]plan.Row{plan.Router(name): {Cols: cols}}}
}

// notice is what the monitor tells.
func (r *routers) notice(uuid, news string) {
	u := tableUpdates{"Logical_Router": {uuid: json.RawMessage(news)}}
	if err := r.session.m.applyUpdate(u); err != nil {
		r.t.Fatal(err)
	}
}

// pass is one Grow: it must find so many changes, which carryOut tells.
func (r *routers) pass(want int, carryOut func()) {
	d := differ{rows: r.state.NB, elems: r.state.SetElems, state: r.state}
	cs, bad := r.session.diffRows(d, func(d *differ) ([]change, []refusal) {
		cs, bad := d.rowsToPut()
		r.found = d.found
		return append(cs, d.rowsToDelete()...), bad
	})
	if len(cs) != want || len(bad) > 0 {
		r.t.Fatalf("%d changes, want %d; refused: %v", len(cs), want, bad)
	}
	carryOut()
	r.session.settleDiff(d, false)
}

// change has one row changed to and fro: what it has not, a row may have as it likes.
func (r *routers) change() {
	r.enabled = !r.enabled
	now := routerRow("0", true)
	now.NB[plan.Router("0")].Cols["enabled"] = r.enabled
	r.state.Replace(plan.Owner{Feature: "one"}, r.one, now)
	r.one = now
	r.pass(1, func() { r.notice("0", fmt.Sprintf(`{"modify":{"enabled":%v}}`, r.enabled)) })
}

// TestOneRowIsLookedAt, however many rows there are.
func TestOneRowIsLookedAt(t *testing.T) {
	r := newRouters(t, 1000)
	if r.found != 1000 {
		t.Errorf("at first %d rows were found, want all", r.found)
	}
	if r.change(); r.found != 1 {
		t.Errorf("one row changed, and %d were looked at", r.found)
	}
}

func BenchmarkOneRow(b *testing.B) {
	for _, n := range []int{10, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			change := newRouters(b, n).change
			b.ReportAllocs()
			for b.Loop() {
				change()
			}
		})
	}
}
