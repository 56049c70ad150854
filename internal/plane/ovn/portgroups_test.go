package ovn

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
)

// TestPortsOfGroups: a switch port comes into the world in its groups, changes them and goes, alone. It stays in
// others' groups. A port that somebody takes out of a group comes back, and one whose group is refused is refused.
func TestPortsOfGroups(t *testing.T) {
	env := ovntest.StartDatabases(t)
	p, s, rows := newNB(t, env, -1), plan.New(), map[string]*plan.Rows{}
	grow := func(name string, groups ...string) []*plane.Refused {
		t.Helper()
		now, old := &plan.Rows{}, rows[name]
		if old == nil {
			old = &plan.Rows{}
		}
		now.AddNB(plan.Switch("sw"), plan.RowID{}, plan.Cols{"name": "sw"})
		port := plan.Row{Parent: plan.Switch("sw"), Cols: plan.Cols{"name": name}}
		for _, g := range groups {
			port.Groups = append(port.Groups, now.AddPortGroup(g))
		}
		plan.Add(&now.NB, plan.RowID{Table: "Logical_Switch_Port", Name: name}, port)
		s.Replace(plan.Owner{Feature: name}, old, now)
		rows[name] = now
		return plane.Refusals(p.Grow(t.Context(), s))
	}
	has := func(group string, want ...string) {
		t.Helper()
		var have []string
		uuids := env.NBCtl("--bare", "--columns=ports", "find", "Port_Group", "name="+group)
		for _, uuid := range strings.Fields(uuids) {
			have = append(have, strings.TrimSpace(env.NBCtl("get", "Logical_Switch_Port", uuid, "name")))
		}
		if len(have) != len(want) || !containsAll(have, want) {
			t.Errorf("group %s has %v, want %v", group, have, want)
		}
	}
	grow("a", "one", "two")
	grow("b", "two")
	has("one", "a")
	has("two", "a", "b")
	env.NBCtl("pg-add", "theirs", "a", "b")
	grow("a", "two")
	has("two", "a", "b")
	if out := env.NBCtl("--bare", "--columns=name", "list", "Port_Group"); strings.Contains(out, "one") {
		t.Errorf("a group without ports stays: %s", out)
	}
	env.NBCtl("clear", "Port_Group", "two", "ports")
	p.Forget()
	grow("b", "two")
	has("two", "a", "b")
	has("theirs", "a", "b")
	grow("a")
	has("two", "b")
	has("theirs", "a", "b")
	s.Replace(plan.Owner{Feature: "b"}, rows["b"], &plan.Rows{})
	rows["b"] = nil
	if refused := plane.Refusals(p.Grow(t.Context(), s)); len(refused) > 0 {
		t.Error(refused)
	}
	has("theirs", "a")
	if refused := grow("c", "theirs"); len(refused) == 0 {
		t.Error("a group of others' name is not refused")
	}
	if out := env.NBCtl("lsp-list", "sw"); strings.Contains(out, "(c)") {
		t.Errorf("a port is there without its group: %s", out)
	}
}

// TestPortsAreClosedThroughout: wherever a large change is cut into transactions, no port is there without the ACL that
// closes it.
func TestPortsAreClosedThroughout(t *testing.T) {
	env := ovntest.StartDatabases(t)
	p, closed, sw := newNB(t, env, -1), &plan.Rows{}, plan.Switch("sw")
	closed.AddNB(sw, plan.RowID{}, plan.Cols{"name": "sw"})
	group := closed.AddPortGroup("closed")
	closed.AddGroupACL("acl", sw, group, "to-lport", 1000, "", "drop")
	port := plan.RowID{Table: tableSwitchPort, Name: "a"}
	plan.Add(&closed.NB, port, plan.Row{Parent: sw, Groups: []plan.RowID{group}, Cols: plan.Cols{"name": "a"}})
	place := func(s *plan.State, what string) int {
		return slices.IndexFunc(pending(t, p, s), func(c change) bool { return strings.HasPrefix(c.String(), what) })
	}
	s := plan.New()
	s.Replace(plan.Owner{}, &plan.Rows{}, closed)
	if acl, port := place(s, "ACL/"), place(s, tableSwitchPort+"/"); acl < 0 || acl > port {
		t.Errorf("the ACL comes at place %d, the port at %d", acl, port)
	}
	grow(t, p, s)
	empty := plan.New()
	gone, acl := place(empty, "removal of "+tableSwitchPort), place(empty, "removal of ACL")
	if group := place(empty, "removal of Port_Group"); gone < 0 || gone > acl || gone > group {
		t.Errorf("the port goes at place %d, its ACL at %d, its group at %d", gone, acl, group)
	}

	fake := NewFake()
	fake.Stepwise, fake.OnStep = true, func(held *plan.State) {
		_, is := held.NB.Get(port)
		if _, dropped := held.NB.Get(plan.RowID{Table: "ACL", Name: "acl"}); is && !dropped {
			t.Error("the fake has the port without its ACL")
		}
	}
	if err := errors.Join(fake.Grow(t.Context(), s), fake.Grow(t.Context(), empty)); err != nil || fake.Writes() < 6 {
		t.Errorf("%d steps, %v", fake.Writes(), err)
	}
}

func containsAll(have, want []string) bool {
	for _, w := range want {
		if !strings.Contains(strings.Join(have, " "), w) {
			return false
		}
	}
	return true
}
