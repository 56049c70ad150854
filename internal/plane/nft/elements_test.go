package nft

import (
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestAddressesNeedNoCommand: addresses that come and go in sets are written by netlink; where that fails, for the
// kernel holds something else than we remember, everything is read and written anew.
func TestAddressesNeedNoCommand(t *testing.T) {
	planetest.OwnNetns(t)
	inet, err := openTable(knftables.InetFamily)
	fatal(t, err)
	c := &counted{Interface: inet}
	p := New(c.over(), open(t, knftables.NetDevFamily, TableName), linkIndex)
	s, former := stateA(), rowsA()
	fatal(t, apply(t, p, s))
	change := func(edit func(map[plan.NFTElem]string)) {
		now := rowsA()
		now.NFTElems = map[plan.NFTElem]string{}
		for k, v := range former.NFTElems {
			now.NFTElems[k] = v
		}
		edit(now.NFTElems)
		s.Replace(planetest.Owner("a"), former, now)
		former, c.runs, c.direct = now, 0, 0
		fatal(t, apply(t, p, s))
		want, _ := texts(s)
		if have := dump(t, "inet", inet); have != want {
			t.Errorf("the kernel has\n%s\nnot\n%s", have, want)
		}
	}

	change(func(e map[plan.NFTElem]string) {
		e[plan.NFTElem{Set: "pods", Key: "10.0.0.3"}] = ""
		e[plan.NFTElem{Set: "pods6", Key: "fd00::2"}] = ""
		delete(e, plan.NFTElem{Set: "pods", Key: "10.0.0.2"})
	})
	if c.runs != 2 || c.direct != 2 {
		t.Errorf("addresses that come and go: %d transactions, of which %d without a command, not 2 and 2", c.runs, c.direct)
	}

	run(t, inet, func(tx *knftables.Transaction) {
		tx.Delete(&knftables.Element{Set: "pods", Key: []string{"10.0.0.3"}})
	})
	change(func(e map[plan.NFTElem]string) { delete(e, plan.NFTElem{Set: "pods", Key: "10.0.0.3"}) })
	if c.direct != 1 {
		t.Errorf("an address that somebody else took: %d transactions without a command, not 1", c.direct)
	}

	change(func(e map[plan.NFTElem]string) { e[plan.NFTElem{Set: "nets", Key: "203.0.113.7"}] = "" })
	if c.direct != 0 {
		t.Error("an element of a set of ranges was written as that of a set of addresses")
	}
}
