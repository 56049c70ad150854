package nft

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"
)

// recordSet is the set of our tables that tells which definition each object was made with.
const recordSet = "egret-objects"

// held is what one of our tables holds.
type held struct {
	exists  bool
	objects map[object]string // with its record; "" when nothing tells how it was made
	rules   map[string][]heldRule
	// stale is set when the kernel has given out handles that we have not read.
	stale bool
	elems map[string]map[string]string // by set or map: spelled key to spelled value
	// unreadable sets hold what we would never have written: they are emptied before they are filled.
	unreadable map[string]bool
	// strays are records of objects that are no more.
	strays []string
}

// heldRule is a rule in the order of its chain. One that is not of our making has no name.
type heldRule struct {
	name, hash string
	handle     int
}

func newHeld() *held {
	return &held{objects: map[object]string{}, rules: map[string][]heldRule{}, elems: map[string]map[string]string{},
		unreadable: map[string]bool{}}
}

// readTable lists a table. A table that does not exist is held empty.
func readTable(ctx context.Context, nft knftables.Interface) (*held, error) {
	h := newHeld()
	names, err := nft.ListAll(ctx)
	if knftables.IsNotFound(err) {
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list our nftables table: %w", err)
	}
	h.exists = true
	for _, kind := range []string{"chain", "set", "map"} {
		for _, name := range names[kind] {
			if name != recordSet {
				h.objects[object{kind, name}] = ""
			}
		}
	}
	if err := h.readRules(ctx, nft); err != nil {
		return nil, err
	}
	if err := h.readRecords(ctx, nft); err != nil {
		return nil, err
	}
	return h, h.readElements(ctx, nft)
}

// readRules lists all chains' rules; nft leaves the sets' elements out of it.
func (h *held) readRules(ctx context.Context, nft knftables.Interface) error {
	rules, err := nft.ListRules(ctx, "")
	if err != nil {
		return fmt.Errorf("list the rules of our nftables table: %w", err)
	}
	h.rules, h.stale = map[string][]heldRule{}, false
	for _, r := range rules {
		rule := heldRule{handle: *r.Handle}
		if r.Comment != nil {
			rule.name, rule.hash, _ = parseRuleComment(*r.Comment)
		}
		h.rules[r.Chain] = append(h.rules[r.Chain], rule)
	}
	return nil
}

func (h *held) readRecords(ctx context.Context, nft knftables.Interface) error {
	records, err := nft.ListElements(ctx, "set", recordSet)
	if err != nil && !knftables.IsNotFound(err) {
		return fmt.Errorf("list the nftables set %s: %w", recordSet, err)
	}
	for _, r := range records {
		o, key := object{}, spellKey(strings.Join(r.Key, ""))
		if r.Comment != nil {
			o.kind, o.name, _ = strings.Cut(*r.Comment, " ")
		}
		if known, ok := h.objects[o]; !ok || known != "" {
			h.strays = append(h.strays, key)
			continue
		}
		h.objects[o] = key
	}
	return nil
}

func (h *held) readElements(ctx context.Context, nft knftables.Interface) error {
	for o := range h.objects {
		if o.kind == "chain" {
			continue
		}
		list, err := nft.ListElements(ctx, o.kind, o.name)
		if ctx.Err() != nil {
			return fmt.Errorf("list the nftables %s: %w", o, ctx.Err())
		}
		h.elems[o.name] = map[string]string{}
		h.unreadable[o.name] = err != nil
		for _, e := range list {
			// Ranges of addresses are read as empty keys.
			if slices.Contains(e.Key, "") {
				h.unreadable[o.name] = true
				break
			}
			h.elems[o.name][spellKey(strings.Join(e.Key, " . "))] = spellKey(strings.Join(e.Value, " . "))
		}
	}
	return nil
}

// errorLabel names a held rule in errors.
func (r heldRule) errorLabel() string {
	if r.name == "" {
		return "handle " + strconv.Itoa(r.handle)
	}
	return r.name
}
