package ovn

import (
	"context"
	"errors"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// maxChanges bounds a transaction: a cold start is cut into several, parents first.
const maxChanges = 5000

// applyChanges makes the changes, in one transaction if the database takes them, and returns those it does not take.
func (p *Plane) applyChanges(ctx context.Context, s *session, cs []change) ([]refusal, error) {
	var bad []refusal
	for len(cs) > 0 {
		n := cutBetweenGroups(cs, min(maxChanges, len(cs)))
		b, err := p.tryChanges(ctx, s, cs[:n])
		if err != nil {
			return nil, err
		}
		bad = append(bad, b...)
		cs = cs[n:]
	}
	return bad, nil
}

// tryChanges applies cs. When the database refuses the transaction it takes out the row that is to blame, and where the
// database names none (uniqueness and references are only checked at commit) it halves cs until it has found it.
func (p *Plane) tryChanges(ctx context.Context, s *session, cs []change) ([]refusal, error) {
	var bad []refusal
	for {
		t, b, err := p.buildTxn(s, cs)
		if err != nil {
			return nil, err
		}
		bad = append(bad, b...)
		if len(b) > 0 {
			cs = withoutBad(cs, b)
			continue
		}
		err = p.sendTxn(ctx, s, t)
		var refused *txnError
		if err == nil || !errors.As(err, &refused) {
			return bad, err
		}
		if refused.op < 0 || t.by[refused.op] < 0 {
			halves, err := p.halveChanges(ctx, s, cs, refused)
			return append(bad, halves...), err
		}
		blamed := refusal{cs[t.by[refused.op]], refused}
		bad = append(bad, blamed)
		cs = withoutBad(cs, []refusal{blamed})
	}
}

func (p *Plane) halveChanges(ctx context.Context, s *session, cs []change, cause error) ([]refusal, error) {
	n := cutBetweenGroups(cs, (len(cs)+1)/2)
	if n == len(cs) {
		n = cutBefore(cs)
	}
	if n == 0 {
		return []refusal{{cs[0], cause}}, nil // one change, or one group
	}
	first, err := p.tryChanges(ctx, s, cs[:n])
	if err != nil {
		return nil, err
	}
	second, err := p.tryChanges(ctx, s, cs[n:])
	if err != nil {
		return nil, err
	}
	return p.retryFirst(ctx, s, first, second)
}

// retryFirst tries what the first half could not do once more, now that the second is in place: a name may have become
// free.
func (p *Plane) retryFirst(ctx context.Context, s *session, first, second []refusal) ([]refusal, error) {
	if len(first) == 0 {
		return second, nil
	}
	cs := make([]change, len(first))
	for i, r := range first {
		cs[i] = r.change
	}
	t, unresolved, err := p.buildTxn(s, cs)
	if err != nil {
		return nil, err
	}
	if len(unresolved) == 0 {
		err := p.sendTxn(ctx, s, t)
		if err == nil {
			return second, nil
		}
		if e := (*txnError)(nil); !errors.As(err, &e) {
			return nil, err
		}
	}
	return append(first, second...), nil
}

// cutBetweenGroups is the first place at or after n where no group is torn.
func cutBetweenGroups(cs []change, n int) int {
	for n < len(cs) && n > 0 && cs[n].groupID() != (plan.RowID{}) && cs[n].groupID() == cs[n-1].groupID() {
		n++
	}
	return n
}

// cutBefore is the last place where no group is torn; 0 if all is one group.
func cutBefore(cs []change) int {
	n := len(cs) - 1
	for n > 0 && cs[n].groupID() != (plan.RowID{}) && cs[n].groupID() == cs[n-1].groupID() {
		n--
	}
	return n
}

func withoutBad(cs []change, bad []refusal) []change {
	if len(bad) == 0 {
		return cs
	}
	drop := map[string]bool{}
	for _, b := range bad {
		drop[b.String()] = true
	}
	return slices.DeleteFunc(slices.Clone(cs), func(c change) bool { return drop[c.String()] })
}

// buildTxn makes one transaction of cs, by the copy of the database as it is now; one that writes to the Northbound is
// counted.
func (p *Plane) buildTxn(s *session, cs []change) (*txn, []refusal, error) {
	s.mu.Lock() // notifications change the copy at any time
	defer s.mu.Unlock()
	t, bad := buildTransaction(s.m, cs)
	if p.db != dbNorth || len(t.ops) == 0 {
		return t, bad, nil
	}
	if err := t.countUp(); err != nil {
		s.conn.closeConn() // the next call makes the row
		return nil, nil, err
	}
	return t, bad, nil
}

// sendTxn runs one transaction, if it has anything to do. After any failure but a refusal nobody knows what the
// database holds: the connection is closed, and the next call reads the database again.
func (p *Plane) sendTxn(ctx context.Context, s *session, t *txn) error {
	if len(t.ops) == 0 {
		return nil
	}
	results, err := s.conn.runTransaction(ctx, t.ops)
	if e := (*txnError)(nil); err != nil && !errors.As(err, &e) {
		s.conn.closeConn()
	}
	if err == nil && p.db == dbNorth {
		p.confirm.expectNumber(lastNumber(results))
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
