package nft

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"

	"github.com/google/nftables"
	"sigs.k8s.io/knftables"
)

// kernelTable is a table as knftables has it, but for ranges in keys: v0.0.22 reads them as empty.
type kernelTable struct {
	knftables.Interface
	family  knftables.Family
	netlink *nftables.Conn
}

func openTable(family knftables.Family) (*kernelTable, error) {
	table, err := knftables.New(family, TableName)
	if err != nil {
		return nil, err
	}
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("open a socket for nftables: %w", err)
	}
	return &kernelTable{table, family, conn}, nil
}

// ListElements is part of knftables.Interface. Ranges of numbers are "FIRST-LAST"; other ranges stay "".
func (t *kernelTable) ListElements(ctx context.Context, kind, name string) ([]*knftables.Element, error) {
	elements, err := t.Interface.ListElements(ctx, kind, name)
	if err != nil || !slices.ContainsFunc(elements,
		func(e *knftables.Element) bool { return slices.Contains(e.Key, "") }) {
		return elements, err
	}
	return t.listRanges(ctx, kind, name)
}

func (t *kernelTable) listRanges(ctx context.Context, kind, name string) ([]*knftables.Element, error) {
	out, err := exec.CommandContext(ctx, "nft", "--json", "list", kind, string(t.family), TableName, name).Output()
	if err != nil {
		return nil, fmt.Errorf("list the elements of nftables %s %s: %w", kind, name, err)
	}
	elements, err := parseElements(out)
	if err != nil {
		return nil, fmt.Errorf("read the elements of nftables %s %s: %w", kind, name, err)
	}
	return elements, nil
}

// parseElements reads what nft lists of one set or map, as libnftables-json(5) describes it.
func parseElements(listing []byte) ([]*knftables.Element, error) {
	type object struct{ Elem []json.RawMessage }
	var l struct {
		Nftables []struct{ Set, Map *object }
	}
	if err := json.Unmarshal(listing, &l); err != nil {
		return nil, err
	}
	var out []*knftables.Element
	for _, o := range l.Nftables {
		switch {
		case o.Set != nil:
			for _, e := range o.Set.Elem {
				out = append(out, parseElement(e, nil))
			}
		case o.Map != nil:
			for _, e := range o.Map.Elem {
				var pair [2]json.RawMessage
				if err := json.Unmarshal(e, &pair); err != nil {
					return nil, fmt.Errorf("element %s: %w", e, err)
				}
				out = append(out, parseElement(pair[0], pair[1]))
			}
		}
	}
	return out, nil
}

// parseElement reads a key, which may come with a comment, and a map's value.
func parseElement(key, value json.RawMessage) *knftables.Element {
	e := &knftables.Element{}
	var dressed struct {
		Elem *struct {
			Val     json.RawMessage
			Comment *string
		}
	}
	if json.Unmarshal(key, &dressed) == nil && dressed.Elem != nil {
		key, e.Comment = dressed.Elem.Val, dressed.Elem.Comment
	}
	e.Key = parseParts(key)
	if value != nil {
		e.Value = parseParts(value)
	}
	return e
}

// parseParts reads a value, or the parts of a concatenation.
func parseParts(text json.RawMessage) []string {
	var joined struct{ Concat []json.RawMessage }
	if json.Unmarshal(text, &joined) != nil || joined.Concat == nil {
		return []string{parsePart(text)}
	}
	var parts []string
	for _, p := range joined.Concat {
		parts = append(parts, parsePart(p))
	}
	return parts
}

func parsePart(text json.RawMessage) string {
	var compound struct {
		Prefix *struct {
			Addr string
			Len  int
		}
		Range []uint64
	}
	if err := json.Unmarshal(text, &compound); err != nil {
		return parseScalar(text)
	}
	switch {
	case compound.Prefix != nil:
		return fmt.Sprintf("%s/%d", compound.Prefix.Addr, compound.Prefix.Len)
	case len(compound.Range) == 2:
		return fmt.Sprintf("%d-%d", compound.Range[0], compound.Range[1])
	}
	return ""
}

// parseScalar is a string without its quotes, or a number; "" for what is neither.
func parseScalar(text json.RawMessage) string {
	var s string
	if json.Unmarshal(text, &s) == nil {
		return s
	}
	var n uint64
	if json.Unmarshal(text, &n) != nil {
		return ""
	}
	return strconv.FormatUint(n, 10)
}
