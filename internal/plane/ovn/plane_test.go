package ovn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func newNB(t *testing.T, env *ovntest.Env, hold time.Duration) *Plane {
	p := NewNB(env.NB, Options{Hold: hold, Log: quiet()})
	t.Cleanup(p.Close)
	return p
}

// grow returns when the hypervisors have s.
func grow(t *testing.T, p *Plane, s *plan.State) {
	t.Helper()
	err := p.Grow(t.Context(), s)
	if plane.OnlyUnconfirmed(err) && signalled(p.LateConfirm(), 5*time.Second) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
}

// signalled says whether ch is signalled within a moment.
func signalled(ch <-chan struct{}, within time.Duration) bool {
	select {
	case <-ch:
		return true
	case <-time.After(within):
		return false
	}
}

// TestConfirmed: a Grow that wrote does not wait for the hypervisors, and says so; that they have it is told.
func TestConfirmed(t *testing.T) {
	env := ovntest.Start(t)
	p := newNB(t, env, time.Minute)
	env.Pause("northd") // which may be quicker than Grow
	if err := p.Grow(t.Context(), nbStateA()); !plane.OnlyUnconfirmed(err) {
		t.Fatalf("have %v, want nothing but ErrUnconfirmed", err)
	}
	env.Resume("northd")
	if !signalled(p.LateConfirm(), 5*time.Second) || !p.Confirmed() {
		t.Error("northd is up and there is no hypervisor, but the transaction is not confirmed")
	}
	cfg := env.NBCtl("get", "NB_Global", ".", "nb_cfg", "hv_cfg")
	if err := p.Grow(t.Context(), nbStateA()); err != nil {
		t.Error(err)
	}
	if now := env.NBCtl("get", "NB_Global", ".", "nb_cfg", "hv_cfg"); now != cfg || !p.Confirmed() {
		t.Errorf("nothing to do, but nb_cfg and hv_cfg went from %q to %q", cfg, now)
	}
}

// TestUnconfirmed: while nobody carries out what is written, each Grow says so at once, and leaves what is new for
// later for some time only.
func TestUnconfirmed(t *testing.T) {
	env := ovntest.Start(t)
	p := newNB(t, env, time.Second)
	grow(t, p, nbStateA())
	env.Pause("northd")
	for _, s := range []*plan.State{nbStateB(), nbStateA()} {
		start := time.Now()
		if err := p.Grow(t.Context(), s); !plane.OnlyUnconfirmed(err) || p.Confirmed() {
			t.Fatalf("have %v, confirmed %v", err, p.Confirmed())
		}
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("waited %v for a northd that stands still", took)
		}
	}
	if len(pending(t, newNB(t, env, -1), nbStateB())) > 0 {
		t.Error("the second state was written though the first one is a moment old")
	}
	time.Sleep(time.Second)
	if err := p.Grow(t.Context(), nbStateA()); !plane.OnlyUnconfirmed(err) {
		t.Fatal(err)
	}
	if len(pending(t, newNB(t, env, -1), nbStateA())) > 0 {
		t.Error("what was left for later is not written")
	}
	restarted := newNB(t, env, time.Minute)
	if err := restarted.Grow(t.Context(), nbStateA()); !plane.OnlyUnconfirmed(err) || restarted.Confirmed() {
		t.Errorf("have %v: a new process takes the former one's transaction for confirmed", err)
	}
	if signalled(p.LateConfirm(), 20*time.Millisecond) {
		t.Error("confirmed while northd stands still")
	}
	env.Resume("northd")
	for _, x := range []*Plane{p, restarted} {
		if !signalled(x.LateConfirm(), 5*time.Second) || !x.Confirmed() {
			t.Error("no late confirmation")
		}
	}
}

func TestChangedBySomebodyElse(t *testing.T) {
	env := ovntest.Start(t)
	p := newNB(t, env, time.Second)
	grow(t, p, nbStateA())
	if signalled(p.Changed(), 100*time.Millisecond) {
		t.Error("our own transaction, or what northd makes of it, counts as somebody else's change")
	}
	for _, c := range [][]string{
		{"set", "Logical_Switch_Port", "pod-a", "options:requested-chassis=elsewhere"},
		{"remove", "Logical_Switch_Port", "pod-a", "options", "requested-chassis"},
		{"set", "Logical_Switch_Port", "pod-a", "options:extra=1"},
		{"lsp-set-addresses", "pod-b", "unknown"},
		{"remove", "Address_Set", "set", "addresses", "10.0.0.1"},
		{"add", "Address_Set", "set", "addresses", "10.0.0.99"},
		{"lsp-del", "pod-a"},
		{"ls-del", "switch"},
		{"set", "NB_Global", ".", "name=other"},
		{"remove", "NB_Global", ".", "options", "use_logical_dp_groups"},
		{"set", "NB_Global", ".", "options:use_logical_dp_groups=false"},
		{"remove", "Load_Balancer", "lb", "external_ids", "k8s.ovn.org/owner-controller"},
		{"create", "Load_Balancer", "name=copy", "external_ids:k8s.ovn.org/owner-controller=egret",
			"external_ids:k8s.ovn.org/id=lb"},
		{"remove", "Load_Balancer_Group", "egret-group", "load_balancer", "{lb}"},
	} {
		env.NBCtl(expand(env, c)...)
		if !signalled(p.Changed(), 5*time.Second) {
			t.Errorf("%v went unnoticed", c)
		}
		grow(t, p, nbStateA())
		if signalled(p.Changed(), 30*time.Millisecond) {
			t.Errorf("after %v was put right, it still counts as changed", c)
		}
		if cs := pending(t, p, nbStateA()); len(cs) > 0 {
			t.Errorf("after %v: %v still to do", c, cs)
		}
	}
	env.NBCtl("lsp-set-enabled", "pod-a", "disabled")
	env.NBCtl("ls-add", "theirs")
	if signalled(p.Changed(), 50*time.Millisecond) {
		t.Error("a column that no plan lists and a row that is not ours count as changed")
	}
}

// TestGlobalRowRemoved: somebody removes the row of NB_Global, which every transaction counts in. One Grow says so, the
// next makes it anew.
func TestGlobalRowRemoved(t *testing.T) {
	env := ovntest.StartDatabases(t) // ovn-northd would make the row, too
	p := newNB(t, env, -1)
	grow(t, p, nbStateA())
	env.NBCtl("--no-wait", "destroy", "NB_Global", ".")
	if !signalled(p.Changed(), 5*time.Second) {
		t.Fatal("went unnoticed")
	}
	if err := p.Grow(t.Context(), nbStateB()); err == nil || !strings.Contains(err.Error(), "NB_Global") {
		t.Errorf("error %v, want one of the missing row", err)
	}
	grow(t, p, nbStateB())
	if cs := pending(t, p, nbStateB()); len(cs) > 0 {
		t.Errorf("%v still to do", cs)
	}
}

// expand replaces {lb} by the uuid of our load balancer.
func expand(env *ovntest.Env, args []string) []string {
	out := append([]string(nil), args...)
	for i, a := range out {
		if a == "{lb}" {
			out[i] = strings.Fields(env.NBCtl("--bare", "--columns=_uuid", "find", "Load_Balancer",
				"external_ids:\"k8s.ovn.org/owner-controller\"=egret"))[0]
		}
	}
	return out
}

// pending is what a fresh process would still do.
func pending(t *testing.T, p *Plane, s *plan.State) []change {
	t.Helper()
	fresh := NewNB(p.endpoint, Options{Log: quiet()})
	defer fresh.Close()
	sess, err := fresh.currentSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cs, bad := sess.diffRows(fresh.newDiffer(s), func(d *differ) ([]change, []refusal) {
		cs, bad := d.rowsToPut()
		return append(append(cs, d.elemChanges()...), d.rowsToDelete()...), bad
	})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return cs
}

// TestNorthdWritesNothingOfOurs: what ovn-northd writes back must not look like a difference to a process that starts.
func TestNorthdWritesNothingOfOurs(t *testing.T) {
	env := ovntest.Start(t)
	grow(t, newNB(t, env, 5*time.Second), nbStateA())
	if err := env.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cs := pending(t, newNB(t, env, 0), nbStateA()); len(cs) > 0 {
		t.Errorf("after northd: %v", cs[0].String())
	}
}

func TestReconnects(t *testing.T) {
	env := ovntest.Start(t)
	p := newNB(t, env, time.Second)
	grow(t, p, nbStateA())
	env.Kill("nb")
	if !signalled(p.Changed(), 5*time.Second) {
		t.Error("the lost connection is not signalled")
	}
	if err := p.Grow(t.Context(), nbStateB()); err == nil || len(plane.Refusals(err)) > 0 {
		t.Errorf("no database: got %v, want an error that blames no row", err)
	}
	env.StartDatabase("nb")
	grow(t, p, nbStateB())
	if cs := pending(t, p, nbStateB()); len(cs) > 0 {
		t.Errorf("%v still to do", cs)
	}
}

// TestUnknownOutcome: a transaction whose reply did not come in time may have taken place, and is neither lost nor made
// twice.
func TestUnknownOutcome(t *testing.T) {
	env := ovntest.StartDatabases(t)
	p := newNB(t, env, -1)
	grow(t, p, nbStateA())
	env.Pause("nb")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Grow(ctx, nbStateB()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the database stands still: got %v", err)
	}
	env.Resume("nb")
	grow(t, p, nbStateB())
	if cs := pending(t, p, nbStateB()); len(cs) > 0 {
		t.Errorf("%d changes left, first %s", len(cs), cs[0].String())
	}
	if n := strings.Count(env.NBCtl("--bare", "--columns=name", "list", "Logical_Switch_Port"), "pod-b"); n != 1 {
		t.Errorf("%d ports named pod-b", n)
	}
}

// TestRefusals: each bad row is named with its owner, and all the others are in place, whether the fault is seen before
// sending, by the server when it reads the row, or only at commit.
func TestRefusals(t *testing.T) {
	policy := func(cols plan.Cols) plan.Row {
		all := plan.Cols{"priority": 100, "match": "ip4", "action": "allow"}
		for k, v := range cols {
			all[k] = v
		}
		return plan.Row{Parent: routerID, Cols: all}
	}
	lrp := func(name string) plan.RowID { return plan.RowID{Table: "Logical_Router_Policy", Name: name} }
	bad := map[plan.RowID]plan.Row{
		lrp("wrong-type"):     policy(plan.Cols{"priority": "100"}),
		lrp("wrong-set"):      policy(plan.Cols{"priority": []string{"x"}}),
		lrp("unknown-column"): policy(plan.Cols{"colour": "red"}),
		lrp("too-high"):       policy(plan.Cols{"priority": 99999}),
		lrp("bad-enum"):       policy(plan.Cols{"action": "bounce"}),
		lrp("no-parent"): {Cols: plan.Cols{"priority": 1, "match": "ip4",
			"action": "allow"}},
		lrp("missing-parent"): {Parent: plan.RowID{Table: "Logical_Router", Name: "nowhere"},
			Cols: plan.Cols{"priority": 1, "match": "ip4", "action": "allow"}},
		{Table: "Logical_Switch", Name: "bad-ref"}: {
			Cols: plan.Cols{"load_balancer_group": []plan.RowID{{Table: tableGroup, Name: "nowhere"}}}},
		{Table: "Logical_Switch_Port", Name: "orphan"}: {Parent: plan.RowID{Table: "Logical_Switch", Name: "bad-ref"},
			Cols: plan.Cols{"name": "orphan"}},
		// seen at commit only
		{Table: "Logical_Switch_Port", Name: "twin"}: {Parent: switchID, Cols: plan.Cols{"name": "theirport"}},
		{Table: "Nonsense", Name: "n"}:               {},
		{Table: "Address_Set", Name: "direct"}:       {Cols: plan.Cols{"addresses": []string{"10.0.0.1"}}},
	}
	env := ovntest.StartDatabases(t)
	env.NBCtl("ls-add", "theirs", "--", "lsp-add", "theirs", "theirport")
	p := newNB(t, env, -1)
	s := nbStateA()
	for id, r := range bad {
		s.NB.Put(planetest.Owner("owner of "+id.String()), id, r)
	}
	s.SetElems.Put(planetest.Owner("owner of elem"), plan.SetElem{Set: "nowhere", Addr: "10.0.0.1"}, plan.None{})
	for i := range 40 {
		s.NB.Put(planetest.Owner("eip/good"), lrp(fmt.Sprint("good", i)), policy(plan.Cols{"priority": 200 + i}))
	}
	err := p.Grow(t.Context(), s)
	got := map[string]bool{}
	for _, r := range plane.Refusals(err) {
		got[r.Owner.Feature] = true
		if r.Owner != planetest.Owner("owner of elem") && r.Owner != planetest.Owner("owner of "+r.Row) {
			t.Errorf("%s is said to be of %s", r.Row, r.Owner)
		}
	}
	if !got["owner of elem"] || len(got) != len(bad)+1 {
		t.Errorf("refused %v, want %d", got, len(bad)+1)
	}
	for id := range bad {
		if !got["owner of "+id.String()] {
			t.Errorf("%s was not refused", id)
		}
		delete(s.NB, id)
	}
	s.SetElems.Drop(planetest.Owner("owner of elem"), plan.SetElem{Set: "nowhere", Addr: "10.0.0.1"})
	if cs := pending(t, p, s); len(cs) > 0 {
		t.Errorf("%d good rows are not in place, first %v", len(cs), cs[0].String())
	}
}

// bigState is n policies' worth of rows: half pods' ports, half addresses in one set.
func bigState(ports, addrs int) *plan.State {
	s := nbStateA()
	for i := range ports {
		name := fmt.Sprintf("pod-%d", i)
		put(s, "Logical_Switch_Port", name, switchID, plan.Cols{"name": name,
			"addresses": []string{fmt.Sprintf("0a:58:0a:01:%02x:%02x 10.1.%d.%d", i>>8, i&255, i>>8, i&255)},
			"options":   map[string]string{"requested-chassis": "n1"}})
	}
	for i := range addrs {
		elems(s, fmt.Sprintf("10.2.%d.%d", i>>8, i&255))
	}
	return s
}

func TestColdStartInChunks(t *testing.T) {
	env := ovntest.StartDatabases(t)
	p := newNB(t, env, -1)
	s := bigState(maxChanges+100, maxChanges+100)
	start := time.Now()
	grow(t, p, s)
	t.Logf("%d rows and %d addresses in %v", len(s.NB), len(s.SetElems), time.Since(start))
	start = time.Now()
	if cs := pending(t, p, s); len(cs) > 0 {
		t.Errorf("%d changes left, first %v", len(cs), cs[0].String())
	}
	t.Logf("read anew and compared in %v", time.Since(start))
}

// BenchmarkOneElement: one address joins a set of 5,000 beside 5,000 rows, on a real ovsdb-server, without waiting for
// hypervisors.
func BenchmarkOneElement(b *testing.B) {
	env := ovntest.StartDatabases(b)
	p := NewNB(env.NB, Options{Hold: -1, Log: quiet()})
	defer p.Close()
	s := bigState(5000, 5000)
	if err := p.Grow(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	e := plan.SetElem{Set: "set", Addr: "10.3.0.1"}
	b.ReportAllocs()
	old, now := &plan.Rows{}, &plan.Rows{SetElems: map[plan.SetElem]plan.None{e: {}}}
	for b.Loop() {
		s.Replace(planetest.Owner("eip/e"), old, now)
		old, now = now, old
		if err := p.Grow(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNothing: the same with nothing to do.
func BenchmarkNothing(b *testing.B) {
	env := ovntest.StartDatabases(b)
	p := NewNB(env.NB, Options{Hold: -1, Log: quiet()})
	defer p.Close()
	s := bigState(5000, 5000)
	for range 2 {
		if err := p.Grow(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := p.Grow(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRowsWithoutExternalIDs: what is told apart by its index is adopted, changed and removed like the rest, and
// others' rows stay.
func TestRowsWithoutExternalIDs(t *testing.T) {
	env := ovntest.StartDatabases(t)
	env.NBCtl("lr-add", "theirs", "--", "lrp-add", "theirs", "theirport", "0a:58:00:00:00:09", "10.9.0.1/24", "--",
		"static-mac-binding-add", "theirport", "10.9.0.9", "0a:58:00:00:00:99")
	with := func(mac string) *plan.State {
		s := nbStateA()
		put(s, "Logical_Router_Port", "rtoe", routerID, plan.Cols{"name": "rtoe-n1", "mac": "0a:58:00:00:00:01",
			"networks": []string{"172.18.0.2/16"}})
		put(s, "Gateway_Chassis", "rtoe-n1-n1", plan.RowID{Table: "Logical_Router_Port", Name: "rtoe"},
			plan.Cols{"chassis_name": "n1", "priority": 1})
		put(s, tableMACBinding, "dummy", plan.RowID{}, plan.Cols{"logical_port": "rtoe-n1", "ip": "169.254.169.4",
			"mac": mac, "override_dynamic_mac": true})
		return s
	}
	for _, s := range []*plan.State{with("0a:58:a9:fe:a9:04"), with("0a:58:a9:fe:a9:05"), nbStateB(),
		with("0a:58:a9:fe:a9:04"), plan.New()} {
		p := newNB(t, env, -1)
		grow(t, p, s)
		want := "10.9.0.9 0a:58:00:00:00:99\n"
		if r, ok := s.NB.Get(plan.RowID{Table: tableMACBinding, Name: "dummy"}); ok {
			want = fmt.Sprint("169.254.169.4 ", r.Cols["mac"], "\n") + want
		}
		got := ""
		for _, ip := range []string{"169.254.169.4", "10.9.0.9"} {
			if mac := strings.TrimSpace(env.NBCtl("--bare", "--columns=mac", "find", tableMACBinding,
				"ip="+ip)); mac != "" {
				got += ip + " " + mac + "\n"
			}
		}
		if got != want {
			t.Errorf("bindings are %q, want %q", got, want)
		}
		if cs := pending(t, p, s); len(cs) > 0 {
			t.Errorf("still to do: %s", cs[0].String())
		}
		if signalled(p.Changed(), 20*time.Millisecond) {
			t.Error("our own write counts as changed by somebody else")
		}
	}
}
