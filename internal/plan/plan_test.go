package plan_test

import (
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
)

// TestSnapshot: a copy has all that a plan has, each table of it, and stays as it is when the plan changes.
func TestSnapshot(t *testing.T) {
	s := plan.New()
	owner, row := plan.Owner{Feature: "a"}, plan.SetElem{Set: "s", Addr: "10.0.0.1"}
	s.Replace(owner, &plan.Rows{}, &plan.Rows{SetElems: map[plan.SetElem]plan.None{row: {}}})
	copied := s.Snapshot()
	for v, i := reflect.ValueOf(*copied), 0; i < v.NumField(); i++ {
		if v.Field(i).Kind() == reflect.Map && v.Field(i).IsNil() {
			t.Errorf("the copy has no table %s", v.Type().Field(i).Name)
		}
	}
	s.Replace(owner, &plan.Rows{SetElems: map[plan.SetElem]plan.None{row: {}}}, &plan.Rows{})
	if _, is := copied.SetElems.Get(row); !is || copied.SetElems.Owner(row) != owner {
		t.Errorf("the copy follows the plan: %v", copied.SetElems)
	}
}

// TestClaimsInAnyOrder: which owner's row stands depends on the owners, not on the order in which they came and went.
func TestClaimsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, claims := plan.Table[string, int]{}, map[plan.Owner]int{}
		owners := []plan.Owner{
			{Feature: "a", Object: ref.Of(ref.Pod, "ns/p")}, {Feature: "a", Object: ref.Of(ref.Pod, "ns/q")},
			{Feature: "b"},
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			owner := rapid.SampledFrom(owners).Draw(t, "owner")
			if rapid.Bool().Draw(t, "drop") {
				table.Drop(owner, "key")
				delete(claims, owner)
				continue
			}
			claims[owner] = rapid.IntRange(0, 9).Draw(t, "row")
			table.Put(owner, "key", claims[owner])
		}
		row, ok := table.Get("key")
		for _, owner := range owners {
			if want, claimed := claims[owner]; claimed {
				if !ok || row != want || table.Owner("key") != owner || len(table.Losers("key")) != len(claims)-1 {
					t.Fatalf("row %d of %s with losers %v, want %d of %s", row, table.Owner("key"), table.Losers("key"),
						want, owner)
				}
				return
			}
		}
		if ok || len(table) != 0 {
			t.Fatal("a key that nobody claims is there")
		}
	})
}

func TestDiff(t *testing.T) {
	want := plan.Table[string, int]{}
	want.Put(plan.Owner{}, "same", 1)
	want.Put(plan.Owner{}, "changed", 2)
	want.Put(plan.Owner{}, "new", 3)
	d := plan.Diff(map[string]int{"same": 1, "changed": 1, "old": 4}, want, plan.Same)
	if !maps.Equal(d.Put, map[string]int{"changed": 2, "new": 3}) || !maps.Equal(d.Del, map[string]int{"old": 4}) {
		t.Errorf("diff %+v", d)
	}
}

// TestSetNames: what OVN's language takes for a name, and no two ids the same.
func TestSetNames(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"egressservice/a/b--c/local.v4", "egressservice/a--b/c/local.v4",
		"egressip/a---b/pods.v4", "egressip/a-b/pods.v4", "egressip/a.b/pods.v4", "egressip/a/b",
		"egressip-guarded-pods.v4"} {
		name := plan.SetName(id)
		for _, r := range name {
			if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '.' {
				t.Errorf("%s makes %s, which is no name", id, name)
			}
		}
		if other := seen[name]; other != "" {
			t.Errorf("%s and %s make the same name", id, other)
		}
		seen[name] = id
	}
}

// TestClaimsOnBehalf: who is claimed for is the owner, as long as anybody claims for it.
func TestClaimsOnBehalf(t *testing.T) {
	s, rows, none := plan.New(), plan.Rows{}, plan.Rows{}
	pods := plan.Owner{Feature: "egressip-pods", Object: ref.Of(ref.EgressIP, "e")}
	a := plan.Owner{Feature: "egressip-pod", Object: ref.Of(ref.Pod, "ns/a")}
	b := plan.Owner{Feature: "egressip-pod", Object: ref.Of(ref.Pod, "ns/b")}
	rows.For(pods).AddSet("set")
	rows.For(pods).AddElem("set", "10.244.0.5")
	set := plan.RowID{Table: "Address_Set", Name: "set"}
	s.Replace(a, &none, &rows)
	s.Replace(b, &none, &rows)
	s.Replace(a, &rows, &none)
	if owner := s.NB.Owner(set); owner != pods || len(s.SetElems) != 1 {
		t.Errorf("owner %s; %s", owner, s.Text())
	}
	s.Replace(b, &rows, &none)
	if s.Text() != "" {
		t.Errorf("nobody claims it, and there is\n%s", s.Text())
	}
}
