package nft

import (
	"context"
	"net/netip"

	"github.com/google/nftables"
	"sigs.k8s.io/knftables"
)

// elementChange is an address that a set gets or loses. There is no elementChange for an element without
// an address.
type elementChange struct {
	set  string
	addr netip.Addr
	gone bool
}

// direct is a table that takes changes of elements by netlink: a pod that joins or leaves changes nothing else, and the
// start of an nft command takes longer than everything else that its node does for it.
type direct interface {
	changeElements([]elementChange) error
}

// mostDirect bounds the messages of a transaction, each of which the kernel acknowledges, by what a socket's default
// buffer takes.
const mostDirect = 256

// runPart is run, by the shorter way where there is one, for what changed since the table held all that was wanted.
func (t *table) runPart(ctx context.Context, b batch) error {
	changes, only := b.elementChanges()
	d, ok := t.nft.(direct)
	if !ok || !only || !t.held.exists || len(t.held.strays) > 0 {
		return t.runBatch(ctx, b)
	}
	err := d.changeElements(changes)
	if err == nil {
		t.noteBatch(b)
	}
	return err
}

// elementChanges are what b does, if it only adds and deletes addresses.
func (b batch) elementChanges() (changes []elementChange, only bool) {
	if b.rebuild || len(b.steps) == 0 || len(b.steps) > mostDirect {
		return nil, false
	}
	for _, s := range b.steps {
		if !s.element.addr.IsValid() {
			return nil, false
		}
		changes = append(changes, s.element)
	}
	return changes, true
}

// addressOf is the change of an element that is a single address in a set of such. Sets of ranges have two elements for
// each, which nft computes.
func addressOf(set object, interval bool, key string, gone bool) elementChange {
	addr, err := netip.ParseAddr(key)
	if err != nil || interval || set.kind != "set" {
		return elementChange{}
	}
	return elementChange{set.name, addr, gone}
}

// changeElements is part of direct: one transaction.
func (t *kernelTable) changeElements(changes []elementChange) error {
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: TableName}
	for _, c := range changes {
		set, change := &nftables.Set{Table: table, Name: c.set}, t.netlink.SetAddElements
		if c.gone {
			change = t.netlink.SetDeleteElements
		}
		if err := change(set, []nftables.SetElement{{Key: c.addr.AsSlice()}}); err != nil {
			return err
		}
	}
	return t.netlink.Flush()
}

// changeElements is part of direct.
func (w watchedSets) changeElements(changes []elementChange) error {
	return w.changes.byUs(func() error { return w.sets.changeElements(changes) })
}

// watchedSets is a watched table that takes changes of elements.
type watchedSets struct {
	watched
	sets direct
}

var _ knftables.Interface = watchedSets{}
