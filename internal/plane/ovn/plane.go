package ovn

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

const (
	dbNorth = "OVN_Northbound"
	dbSouth = "OVN_Southbound"
)

// Where ovn-ctl puts the local databases' sockets.
const (
	DefaultNB = "unix:/run/ovn/ovnnb_db.sock"
	DefaultSB = "unix:/run/ovn/ovnsb_db.sock"
)

// Options are a plane's settings; the zero value is good.
type Options struct {
	// Hold is how long a Northbound Grow leaves what is new for later while the zone's hypervisors are at its last
	// transaction: changes that come meanwhile are one transaction then. 0 is 2 s; less: nobody asks whether there are
	// hypervisors.
	Hold time.Duration
	// Log gets what is worth knowing; nil is slog's default.
	Log *slog.Logger
}

// Plane is the plane of one database of this node's zone. It is safe for concurrent use.
type Plane struct {
	db, name, endpoint string
	hold               time.Duration
	log                *slog.Logger
	confirm            *confirm
	changed            chan struct{}

	mu      sync.Mutex
	session *session
}

var _ plane.Plane = (*Plane)(nil)

// NewNB makes the plane of the Northbound at endpoint ("unix:PATH"): State.NB and State.SetElems. It connects when
// first used, and again whenever the connection is lost.
//
// Grow applies the whole difference, removals included, in one transaction, for OVN then moves from the old to the new
// as one; Shrink does nothing.
func NewNB(endpoint string, o Options) *Plane { return newPlane(dbNorth, "nb", endpoint, o) }

// NewSB makes the plane of the Southbound at endpoint: State.SB, which may hold Chassis (of other zones, marked
// other_config:is-remote=true) and their Encap.
func NewSB(endpoint string, o Options) *Plane { return newPlane(dbSouth, "sb", endpoint, o) }

func newPlane(db, name, endpoint string, o Options) *Plane {
	if o.Hold == 0 {
		o.Hold = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Plane{db: db, name: name, endpoint: endpoint, hold: o.Hold, log: o.Log, confirm: newConfirm(),
		changed: make(chan struct{}, 1)}
}

// Name is "nb" or "sb".
func (p *Plane) Name() string { return p.name }

// Changed is signalled when a row of ours is no longer what was last applied, and when the connection is lost: apply
// again.
func (p *Plane) Changed() <-chan struct{} { return p.changed }

// Confirmed says whether every hypervisor of the zone has carried out the last transaction; for a plane that has just
// started, the last one there was. Always true of the Southbound.
func (p *Plane) Confirmed() bool { return p.confirm.isConfirmed() }

// LateConfirm is signalled when the hypervisors have carried out what a Grow that returned plane.ErrUnconfirmed waits
// for.
func (p *Plane) LateConfirm() <-chan struct{} { return p.confirm.reached }

// Grow makes the database hold want. Errors are *plane.Refused, joined, for rows that it does not take, and
// plane.ErrUnconfirmed, while the hypervisors have not carried out the last transaction; any other error is of the
// database or the connection.
func (p *Plane) Grow(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.newDiffer(want)
	return p.syncRows(ctx, d, func(d *differ) ([]change, []refusal) {
		cs, bad := d.rowsToPut()
		if p.db == dbSouth {
			return append(cs, d.yieldingRemovals(cs)...), bad
		}
		elems, badElems := wellFormed(d.elemChanges())
		return slices.Concat(cs, elems, d.rowsToDelete()), append(bad, badElems...)
	})
}

// Shrink removes the chassis that want does not have from the Southbound; for the Northbound Grow has done so.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	if p.db == dbNorth {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.newDiffer(want)
	d.shrinking = true
	return p.syncRows(ctx, d, func(d *differ) ([]change, []refusal) {
		d.rowsToPut() // to know what is wanted; Grow has said what is wrong with it
		return d.rowsToDelete(), nil
	})
}

// Ours are the rows of ours that a table has, whoever wrote them, in no order.
func (p *Plane) Ours(ctx context.Context, table string) ([]plan.RowID, error) {
	rows, err := p.SetColumn(ctx, table, "")
	return slices.Collect(maps.Keys(rows)), err
}

// SetColumn returns a column of the rows of ours that a table has, whoever wrote them: a set.
func (p *Plane) SetColumn(ctx context.Context, table, column string) (map[plan.RowID][]string, error) {
	out := map[plan.RowID][]string{}
	return out, p.readMirror(ctx, func(m *mirror) {
		for id, r := range m.ours {
			if id.Table == table {
				out[id] = r.valueOf(column).set
			}
		}
	})
}

// Elements are those of all address sets of ours, whoever wrote them, in no order.
func (p *Plane) Elements(ctx context.Context) (elems []plan.SetElem, err error) {
	err = p.readMirror(ctx, func(m *mirror) { elems = slices.Collect(maps.Keys(m.elems)) })
	return elems, err
}

func (p *Plane) readMirror(ctx context.Context, read func(*mirror)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.currentSession(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	read(s.m)
	return nil
}

// Forget makes the next call connect and read again.
func (p *Plane) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.session; s != nil {
		p.session = nil
		s.dropped.Store(true)
		s.conn.closeConn()
	}
}

// Close ends the connection. The plane can still be used, and then connects again.
func (p *Plane) Close() { p.Forget() }

func (p *Plane) newDiffer(want *plan.State) differ {
	if p.db == dbSouth {
		return differ{rows: want.SB, state: want}
	}
	return differ{rows: want.NB, elems: want.SetElems, state: want}
}

func (p *Plane) syncRows(ctx context.Context, d differ, parts func(*differ) ([]change, []refusal)) error {
	s, err := p.currentSession(ctx)
	if err != nil {
		return err
	}
	if p.awaitsConfirm() && p.confirm.sinceLast() < p.hold {
		return plane.ErrUnconfirmed
	}
	cs, bad := s.diffRows(d, parts)
	more, err := p.applyChanges(ctx, s, cs)
	bad = append(bad, more...)
	s.settleDiff(d, err != nil || len(bad) > 0)
	if err != nil {
		return err
	}
	if p.awaitsConfirm() {
		return errors.Join(p.refusalErrors(bad), plane.ErrUnconfirmed)
	}
	return p.refusalErrors(bad)
}

func (p *Plane) awaitsConfirm() bool {
	return p.db == dbNorth && p.hold > 0 && p.confirm.awaitsConfirm()
}

func (p *Plane) refusalErrors(bad []refusal) error {
	var errs []error
	for _, b := range bad {
		errs = append(errs, &plane.Refused{Plane: p.name, Owner: b.owner, Row: b.String(), Err: b.err})
	}
	return errors.Join(errs...)
}

// currentSession returns the session, a new one if there was no session or the connection was lost.
func (p *Plane) currentSession(ctx context.Context) (*session, error) {
	if p.session != nil && p.session.isAlive() {
		return p.session, nil
	}
	s, err := openSession(ctx, p.endpoint, p.db, p.log, p.onChange, p.confirm.seeNumber)
	if err != nil {
		return nil, err
	}
	if p.db == dbNorth {
		if err := s.ensureGlobal(ctx); err != nil {
			s.conn.closeConn()
			return nil, err
		}
		p.confirm.loadCounters(s.globalNumber("nb_cfg"), s.globalNumber("hv_cfg"))
	}
	p.session = s
	go func() {
		<-s.conn.whenClosed()
		if !s.dropped.Load() {
			p.onChange()
		}
	}()
	return s, nil
}

func (p *Plane) onChange() { plane.SignalOnce(p.changed) }
