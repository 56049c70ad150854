package ovn

import (
	"fmt"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestMovedPodsAreInOneSet: 20,000 pods go from one EgressIP to another, which are too many changes for one
// transaction. After each, every pod is in exactly one EgressIP's sets, and under the guard; the former sets go with
// their last pod.
func TestMovedPodsAreInOneSet(t *testing.T) {
	const pods = 20000
	have, want := map[plan.SetElem]plan.None{}, plan.Table[plan.SetElem, plan.None]{}
	m := &mirror{elems: map[plan.SetElem]plan.None{}}
	for i := range pods {
		addr := fmt.Sprintf("10.%d.%d.%d", 244+i>>16, i>>8&255, i&255)
		for _, set := range []string{"local", "pods"} {
			have[plan.SetElem{Set: "egressip/a/" + set, Addr: addr}] = plan.None{}
			want.Put(planetest.Owner("pod"), plan.SetElem{Set: "egressip/b/" + set, Addr: addr}, plan.None{})
		}
		have[plan.SetElem{Set: "guarded", Addr: addr}] = plan.None{}
		want.Put(planetest.Owner("pod"), plan.SetElem{Set: "guarded", Addr: addr}, plan.None{})
	}
	for e := range have {
		m.elems[e] = have[e]
	}
	rows := plan.Table[plan.RowID, plan.Row]{}
	// those of a have gone from the plan
	rows.Put(planetest.Owner("x"), plan.RowID{Table: tableAddressSet, Name: "egressip/b/local"}, plan.Row{})
	d := differ{m: m, rows: rows, elems: want}
	cs := d.elemChanges()
	if len(cs) != 4*pods {
		t.Fatalf("%d changes, want %d", len(cs), 4*pods)
	}
	sortChanges(schema{tableAddressSet: {}}, cs)
	for transactions := 0; len(cs) > 0; transactions++ {
		n := cutBetweenGroups(cs, min(maxChanges, len(cs)))
		for _, c := range cs[:n] {
			if c.del {
				delete(have, c.elem)
			} else {
				have[c.elem] = plan.None{}
			}
		}
		cs = cs[n:]
		for i := range pods {
			addr := fmt.Sprintf("10.%d.%d.%d", 244+i>>16, i>>8&255, i&255)
			for _, set := range []string{"local", "pods"} {
				_, a := have[plan.SetElem{Set: "egressip/a/" + set, Addr: addr}]
				_, b := have[plan.SetElem{Set: "egressip/b/" + set, Addr: addr}]
				if _, guarded := have[plan.SetElem{Set: "guarded", Addr: addr}]; a == b || !guarded {
					t.Fatalf("after transaction %d: %s is in %s of a: %v, of b: %v, guarded: %v", transactions, addr,
						set, a, b, guarded)
				}
			}
		}
	}
}
