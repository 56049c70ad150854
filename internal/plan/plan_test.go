package plan_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
)

// TestClaimsInAnyOrder: which owner's row stands depends on the owners, not on the order in which they came and went.
func TestClaimsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, claims := plan.Table[string, int]{}, map[string]int{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			owner := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner")
			if rapid.Bool().Draw(t, "drop") {
				table.Drop(owner, "key")
				delete(claims, owner)
				continue
			}
			claims[owner] = rapid.IntRange(0, 9).Draw(t, "row")
			table.Put(owner, "key", claims[owner])
		}
		row, ok := table.Get("key")
		for _, owner := range []string{"a", "b", "c"} {
			if want, claimed := claims[owner]; claimed {
				if !ok || row != want || table.Owner("key") != owner || len(table.Losers("key")) != len(claims)-1 {
					t.Fatalf("row %d of %q with losers %v, want %d of %q", row, table.Owner("key"), table.Losers("key"), want, owner)
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
	want.Put("o", "same", 1)
	want.Put("o", "changed", 2)
	want.Put("o", "new", 3)
	d := plan.Diff(map[string]int{"same": 1, "changed": 1, "old": 4}, want, plan.Same)
	if !maps.Equal(d.Put, map[string]int{"changed": 2, "new": 3}) || !maps.Equal(d.Del, map[string]int{"old": 4}) || d.Empty() {
		t.Errorf("diff %+v", d)
	}
}

// TestSetNames: what OVN's language takes for a name, and no two ids the same.
func TestSetNames(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"egressip/a-b/pods.v4", "egressip/a.b/pods.v4", "egressip/a/b", "egressip-served-pods.v4"} {
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
	rows.For("egressip-pods/e").AddSet("set")
	rows.For("egressip-pods/e").AddElem("set", "10.244.0.5")
	set := plan.RowID{Table: "Address_Set", Name: "set"}
	s.Replace("egressip-pod/a", &none, &rows)
	s.Replace("egressip-pod/b", &none, &rows)
	s.Replace("egressip-pod/a", &rows, &none)
	if owner := s.NB.Owner(set); owner != "egressip-pods/e" || len(s.SetElems) != 1 {
		t.Errorf("owner %q; %s", owner, s.Text())
	}
	s.Replace("egressip-pod/b", &rows, &none)
	if s.Text() != "" {
		t.Errorf("nobody claims it, and there is\n%s", s.Text())
	}
}
