package ovn

import (
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

func containsAll(have, want []string) bool {
	for _, w := range want {
		if !strings.Contains(strings.Join(have, " "), w) {
			return false
		}
	}
	return true
}
