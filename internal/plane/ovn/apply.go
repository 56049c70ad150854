package ovn

import (
	"context"
	"errors"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// maxChanges bounds a transaction: a cold start is cut into several, parents first.
const maxChanges = 5000

// apply makes the changes, in one transaction if the database takes them, and returns those it does not take.
func (p *Plane) apply(ctx context.Context, s *session, cs []change) ([]refusal, error) {
	var bad []refusal
	for len(cs) > 0 {
		n := cut(cs, min(maxChanges, len(cs)))
		b, err := p.try(ctx, s, cs[:n])
		if err != nil {
			return nil, err
		}
		bad = append(bad, b...)
		cs = cs[n:]
	}
	return bad, nil
}

// try applies cs. When the database refuses the transaction it takes out the row that is to blame, and where the
// database names none (uniqueness and references are only checked at commit) it halves cs until it has found it.
func (p *Plane) try(ctx context.Context, s *session, cs []change) ([]refusal, error) {
	var bad []refusal
	for {
		t, b, err := p.build(s, cs)
		if err != nil {
			return nil, err
		}
		bad = append(bad, b...)
		if len(b) > 0 {
			cs = without(cs, b)
			continue
		}
		err = p.send(ctx, s, t)
		var refused *txnError
		if err == nil || !errors.As(err, &refused) {
			return bad, err
		}
		if refused.op < 0 || t.by[refused.op] < 0 {
			halves, err := p.halve(ctx, s, cs, refused)
			return append(bad, halves...), err
		}
		blamed := refusal{cs[t.by[refused.op]], refused}
		bad = append(bad, blamed)
		cs = without(cs, []refusal{blamed})
	}
}

func (p *Plane) halve(ctx context.Context, s *session, cs []change, cause error) ([]refusal, error) {
	n := cut(cs, (len(cs)+1)/2)
	if n == len(cs) {
		n = cutBefore(cs)
	}
	if n == 0 {
		return []refusal{{cs[0], cause}}, nil // one change, or one group
	}
	first, err := p.try(ctx, s, cs[:n])
	if err != nil {
		return nil, err
	}
	second, err := p.try(ctx, s, cs[n:])
	if err != nil {
		return nil, err
	}
	return p.again(ctx, s, first, second)
}

// again tries what the first half could not do once more, now that the second is in place: a name may have become free.
func (p *Plane) again(ctx context.Context, s *session, first, second []refusal) ([]refusal, error) {
	if len(first) == 0 {
		return second, nil
	}
	cs := make([]change, len(first))
	for i, r := range first {
		cs[i] = r.change
	}
	t, unresolved, err := p.build(s, cs)
	if err != nil {
		return nil, err
	}
	if len(unresolved) == 0 {
		err := p.send(ctx, s, t)
		if err == nil {
			return second, nil
		}
		if e := (*txnError)(nil); !errors.As(err, &e) {
			return nil, err
		}
	}
	return append(first, second...), nil
}

// cut is the first place at or after n where no group is torn.
func cut(cs []change, n int) int {
	for n < len(cs) && n > 0 && cs[n].group() != (plan.RowID{}) && cs[n].group() == cs[n-1].group() {
		n++
	}
	return n
}

// cutBefore is the last place where no group is torn; 0 if all is one group.
func cutBefore(cs []change) int {
	n := len(cs) - 1
	for n > 0 && cs[n].group() != (plan.RowID{}) && cs[n].group() == cs[n-1].group() {
		n--
	}
	return n
}

func without(cs []change, bad []refusal) []change {
	if len(bad) == 0 {
		return cs
	}
	drop := map[string]bool{}
	for _, b := range bad {
		drop[b.String()] = true
	}
	return slices.DeleteFunc(slices.Clone(cs), func(c change) bool { return drop[c.String()] })
}

// build makes one transaction of cs, by the copy of the database as it is now; one that writes to the Northbound is
// counted.
func (p *Plane) build(s *session, cs []change) (*txn, []refusal, error) {
	s.mu.Lock() // notifications change the copy at any time
	defer s.mu.Unlock()
	t, bad := build(s.m, cs)
	if p.db != dbNorth || len(t.ops) == 0 {
		return t, bad, nil
	}
	if err := t.countUp(); err != nil {
		s.conn.close() // the next call makes the row
		return nil, nil, err
	}
	return t, bad, nil
}

// send runs one transaction, if it has anything to do. After any failure but a refusal nobody knows what the database
// holds: the connection is closed, and the next call reads the database again.
func (p *Plane) send(ctx context.Context, s *session, t *txn) error {
	if len(t.ops) == 0 {
		return nil
	}
	results, err := s.conn.transact(ctx, t.ops)
	if e := (*txnError)(nil); err != nil && !errors.As(err, &e) {
		s.conn.close()
	}
	if err == nil && p.db == dbNorth {
		p.confirm.expect(lastNumber(results))
	}
	return err
}

// lastNumber is what countUp's select found.
func lastNumber(results []*result) int64 {
	r := results[len(results)-1]
	if r == nil || len(r.Rows) == 0 {
		return 0
	}
	n, _ := r.Rows[0]["nb_cfg"].(float64)
	return int64(n)
}
