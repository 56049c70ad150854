package ovn

import (
	"context"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

var _ plane.Comparer = (*Plane)(nil)

// Compare is part of plane.Comparer. It reads the database over a connection of its own: a database that hangs, or a
// comparison that takes long, keeps nobody from writing.
func (p *Plane) Compare(ctx context.Context, want *plan.State) ([]plane.Difference, error) {
	s, err := openSession(ctx, p.endpoint, p.db, p.log, func() {}, func(int64) {})
	if err != nil {
		return nil, err
	}
	defer s.conn.closeConn()
	s.mu.Lock() // updates wait
	defer s.mu.Unlock()
	d := p.newDiffer(want)
	d.m, d.applied = s.m, map[plan.RowID]*wanted{} // nothing is taken for granted
	puts, _ := d.rowsToPut()
	var out []plane.Difference
	for _, c := range puts {
		out = append(out, plane.Difference{Plane: p.name, Row: c.String(), Owner: c.owner, Missing: true})
	}
	for _, c := range d.rowsToDelete() {
		out = append(out, plane.Difference{Plane: p.name, Row: c.row.table.name + "/" + c.row.key.Name})
	}
	elems := plan.Diff(s.m.elems, d.elems, plan.Same)
	for e := range elems.Put {
		out = append(out, plane.Difference{Plane: p.name, Row: elemRow(e), Owner: d.elems.Owner(e), Missing: true})
	}
	for e := range elems.Del {
		out = append(out, plane.Difference{Plane: p.name, Row: elemRow(e)})
	}
	return out, nil
}

func elemRow(e plan.SetElem) string { return (&change{elem: e}).String() }
