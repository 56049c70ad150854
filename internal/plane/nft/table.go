package nft

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// table is one of our two nftables tables.
type table struct {
	nft    knftables.Interface
	family string
	device Device
	held   *held // nil: not read yet
	// suspects are the owners that the kernel refused a row of the last time. Their steps no longer ride with the
	// others'.
	suspects      []plan.Owner
	grown, shrunk follower
	aliases       aliases
	devices       map[string]int // with the indexes that chains were made for
	early         bool           // the plan does not yet have all rows: no element goes
}

func newTable(nft knftables.Interface, family knftables.Family, device Device) *table {
	return &table{nft: nft, family: string(family), device: device, grown: newFollower(), shrunk: newFollower()}
}

func (t *table) growTable(ctx context.Context, want *plan.State) error {
	p := t.grown.takePart(want)
	if !t.growPart(ctx, want, p) {
		if err := t.growWhole(ctx, want); err != nil {
			return err
		}
	}
	t.grown.markDone(want)
	return nil
}

// growPart writes what changed since all was as wanted. It says whether that was known, and met with no trouble.
func (t *table) growPart(ctx context.Context, want *plan.State, p part) bool {
	if !p.isKnown() || !t.inSync() || p.losesObjects(want) {
		return false
	}
	w := t.wantedOf(want, p)
	if len(w.refused) > 0 {
		return false
	}
	b, err := t.growthBatch(ctx, w)
	if err != nil || b.rebuild {
		return false
	}
	if err = t.runPart(ctx, b); err != nil {
		t.held = nil // our memory of the table may be wrong
	}
	return err == nil
}

// inSync says whether all rows were taken the last time, and are still there as far as we know.
func (t *table) inSync() bool {
	for name, was := range t.devices {
		if now, ok := t.device(name); !ok || now != was {
			return false
		}
	}
	return t.held != nil && len(t.suspects) == 0
}

func (t *table) growWhole(ctx context.Context, want *plan.State) error {
	w := t.wantedOf(want, part{})
	refused, err := t.growAll(ctx, w)
	if err != nil {
		t.held = nil
		return fmt.Errorf("write the nftables table %s %s: %w", t.family, TableName, err)
	}
	t.suspects = ownersOf(refused)
	for _, r := range refused {
		w.refused = append(w.refused, r)
	}
	return errors.Join(w.refused...)
}

// growAll lets suspects follow the others, and then tries those again that were refused because they name what a
// suspect has only made now.
func (t *table) growAll(ctx context.Context, w *wanted) ([]*plane.Refused, error) {
	refused, err := t.growSound(ctx, w)
	if err != nil {
		return nil, err
	}
	again, err := t.growOnly(ctx, w, t.suspects)
	if err == nil && len(again) < len(t.suspects) {
		refused, err = t.growOnly(ctx, w, ownersOf(refused))
	}
	return append(refused, again...), err
}

func ownersOf(refused []*plane.Refused) []plan.Owner {
	var out []plan.Owner
	for _, r := range refused {
		out = append(out, r.Owner)
	}
	return out
}

// growSound is one transaction. When it fails, our memory of the table may be wrong, or it was carried out and its
// answer lost. The table is read again, and the transaction computed again. When that cannot be carried out either, the
// owners that make it fail are left out.
func (t *table) growSound(ctx context.Context, w *wanted) ([]*plane.Refused, error) {
	sound := func(owner plan.Owner) bool { return !slices.Contains(t.suspects, owner) }
	b, err := t.growthBatch(ctx, w)
	if err != nil {
		return nil, err
	}
	failure := t.runBatch(ctx, b.ofOwners(sound))
	if failure == nil {
		return nil, nil
	}
	t.held = nil
	if b, err = t.growthBatch(ctx, w); err != nil {
		return nil, errors.Join(failure, err)
	}
	return t.tryRun(ctx, b.ofOwners(sound))
}

// growOnly tries again what was refused of some owners; the reason may be gone.
func (t *table) growOnly(ctx context.Context, w *wanted, owners []plan.Owner) ([]*plane.Refused, error) {
	if len(owners) == 0 {
		return nil, nil
	}
	b, err := t.growthBatch(ctx, w)
	if err != nil {
		return nil, err
	}
	return t.tryRun(ctx, b.ofOwners(func(owner plan.Owner) bool { return slices.Contains(owners, owner) }))
}

func (t *table) growthBatch(ctx context.Context, w *wanted) (batch, error) {
	if err := t.ensureRead(ctx); err != nil {
		return batch{}, err
	}
	b := growBatch(w, t.held, !t.early)
	if !b.byHandle() || !t.held.stale {
		return b, nil
	}
	if err := t.held.readRules(ctx, t.nft); err != nil {
		return batch{}, err
	}
	return growBatch(w, t.held, !t.early), nil
}

func (t *table) shrinkTable(ctx context.Context, want *plan.State) error {
	p := t.shrunk.takePart(want)
	if !t.shrinkPart(ctx, want, p) {
		if err := t.shrinkWhole(ctx, want); err != nil {
			return err
		}
	}
	if len(t.suspects) == 0 { // else what they may name is still there
		t.shrunk.markDone(want)
	}
	return nil
}

// shrinkPart is growPart's counterpart.
func (t *table) shrinkPart(ctx context.Context, want *plan.State, p part) bool {
	if !p.isKnown() || !t.inSync() {
		return false
	}
	w := t.wantedOf(want, p)
	if len(w.refused) > 0 {
		return false
	}
	err := t.tryShrink(ctx, w, t.runPart)
	if err != nil {
		t.held = nil
	}
	return err == nil
}

// shrinkWhole is one transaction; a failed one is computed again from a new reading.
func (t *table) shrinkWhole(ctx context.Context, want *plan.State) error {
	w := t.wantedOf(want, part{})
	var failure error
	for {
		fresh := t.held == nil
		err := t.tryShrink(ctx, w, t.runBatch)
		if err == nil {
			return nil
		}
		t.held = nil
		if failure = errors.Join(failure, err); fresh {
			return fmt.Errorf("remove rows from the nftables table %s %s: %w", t.family, TableName, failure)
		}
	}
}

// tryShrink keeps sets and chains while rows are refused: a row that could not be replaced may name them. A table of
// which nothing is wanted goes as a whole.
func (t *table) tryShrink(ctx context.Context, w *wanted, run func(context.Context, batch) error) error {
	if err := t.ensureRead(ctx); err != nil || !t.held.exists {
		return err
	}
	if w.isNothing(t.held) {
		return t.dropTable(ctx)
	}
	keepObjects := len(t.suspects) > 0
	b := shrinkBatch(w, t.held, keepObjects)
	if b.byHandle() && t.held.stale {
		if err := t.held.readRules(ctx, t.nft); err != nil {
			return err
		}
		b = shrinkBatch(w, t.held, keepObjects)
	}
	return run(ctx, b)
}

func (t *table) dropTable(ctx context.Context) error {
	tx := t.nft.NewTransaction()
	tx.Delete(&knftables.Table{})
	if err := t.nft.Run(ctx, tx); err != nil {
		return err
	}
	t.held = newHeld()
	return nil
}

// ensureRead makes sure that t.held is known. A table that was read again may differ from the plan in any row.
func (t *table) ensureRead(ctx context.Context) error {
	if t.held != nil {
		return nil
	}
	h, err := readTable(ctx, t.nft)
	if err != nil {
		return err
	}
	t.held = h
	t.grown.forgetElems()
	t.shrunk.forgetElems()
	return nil
}

// runBatch carries out b, if there is anything in it, and remembers it.
func (t *table) runBatch(ctx context.Context, b batch) error {
	if b.isEmpty() {
		return nil
	}
	if err := t.nft.Run(ctx, t.buildTransaction(b)); err != nil {
		return err
	}
	if b.rebuild {
		t.held = newHeld()
	}
	t.held.exists, t.held.strays = true, nil
	t.noteBatch(b)
	return nil
}

func (t *table) noteBatch(b batch) {
	for _, s := range b.steps {
		s.note(t.held)
	}
}

func (t *table) buildTransaction(b batch) *knftables.Transaction {
	tx := t.nft.NewTransaction()
	tx.Add(&knftables.Table{})
	strays := t.held.strays
	if b.rebuild {
		tx.Delete(&knftables.Table{})
		tx.Add(&knftables.Table{})
		strays = nil
	}
	tx.Add(&knftables.Set{Name: recordSet, Type: "ipv6_addr"})
	for _, key := range strays {
		tx.Delete(&knftables.Element{Set: recordSet, Key: []string{key}})
	}
	for _, s := range b.steps {
		s.write(tx)
	}
	return tx
}
