package ovn

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plan"
)

// session is one connection with its local copy. It ends with the connection, and the next session reads everything
// again.
type session struct {
	conn *conn
	log  *slog.Logger
	// changed is called when something of ours is no longer as it was last wanted, seen when NB_Global changes.
	changed func()
	seen    func(hvCfg int64)

	mu      sync.Mutex
	m       *mirror
	applied map[plan.RowID]*wanted // rows that the database holds as wanted, by key
	writing bool                   // a Grow or Shrink is at it, and looks at what changed itself
	pending map[plan.RowID]*wanted // rows that it writes, by key
	dropped atomic.Bool            // ended by us
	elems   plan.Follower[plan.SetElem]
	grown   plan.Follower[plan.RowID]
	shrunk  plan.Follower[plan.RowID]
}

// open connects and reads the database.
func open(ctx context.Context, endpoint, db string, log *slog.Logger, changed func(), seen func(int64)) (*session,
	error) {
	s := &session{log: log, changed: changed, seen: seen, applied: map[plan.RowID]*wanted{}}
	s.follow(db)
	s.mu.Lock() // notifications wait until the first copy is in place
	defer s.mu.Unlock()
	var err error
	if s.conn, err = dial(ctx, endpoint, db, s.onUpdate); err != nil {
		return nil, err
	}
	s.m = newMirror(s.conn.schema)
	u, err := s.conn.monitor(ctx, s.conn.schema.monitored(db == dbSouth))
	if err == nil {
		err = s.m.update(u)
	}
	if err != nil {
		s.conn.close()
		return nil, err
	}
	s.clearTouched()
	return s, nil
}

// follow begins to follow a database's tables of plans.
func (s *session) follow(db string) {
	table := plan.InNB
	if db == dbSouth {
		table = plan.InSB
	}
	s.grown, s.shrunk = plan.Follow[plan.RowID](table), plan.Follow[plan.RowID](table)
	s.elems = plan.Follow[plan.SetElem](plan.InSetElems)
}

func (s *session) alive() bool { return s.conn.alive() }

// ensureGlobal makes the NB_Global row of a database that nobody has initialised yet.
func (s *session) ensureGlobal(ctx context.Context) error {
	if s.hasGlobal() {
		return nil
	}
	row := ovsdb.Row{"ipsec": false} // libovsdb leaves an empty row out of the message
	_, err := s.conn.transact(ctx, []ovsdb.Operation{{Op: ovsdb.OperationInsert, Table: tableGlobal, Row: row}})
	if err != nil && s.alive() && s.hasGlobal() {
		return nil // ovn-northd was quicker
	}
	if err != nil {
		return fmt.Errorf("make the NB_Global row: %w", err)
	}
	return nil
}

func (s *session) hasGlobal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.ours[plan.RowID{Table: tableGlobal}] != nil
}

// onUpdate runs in the connection's read loop: it must not wait for anything but the lock, which nobody holds for long.
func (s *session) onUpdate(u tableUpdates) {
	s.mu.Lock()
	err := s.m.update(u)
	again := err == nil && !s.writing && s.strayed()
	s.mu.Unlock()
	if err != nil {
		s.log.Error("lost track of the database, reading it anew", "db", s.conn.db, "err", err)
		s.conn.close()
		return
	}
	if again {
		s.changed()
	}
	if u[tableGlobal] != nil {
		s.seen(s.global("hv_cfg"))
	}
}

// strayed looks at the rows that have changed, forgets those that are no longer as they were applied, and says whether
// there are any.
func (s *session) strayed() bool {
	if len(s.m.touchedElems) > 0 {
		s.elems.Forget()
	}
	stray := len(s.m.touchedElems)+len(s.m.extra) > 0
	for key := range s.m.touched {
		w := s.applied[key]
		if w == nil {
			stray = stray || s.m.ours[key] != nil && key.Table != tableGlobal
			continue
		}
		if held, err := s.m.holds(w); !held || err != nil {
			delete(s.applied, key)
			stray = true
		}
	}
	if stray {
		s.grown.Forget()
		s.shrunk.Forget()
	}
	s.clearTouched()
	return stray
}

func (s *session) clearTouched() {
	clear(s.m.touched)
	clear(s.m.touchedElems)
}

// global reads a number of NB_Global.
func (s *session) global(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.m.ours[plan.RowID{Table: tableGlobal}]
	if r == nil {
		return 0
	}
	n, _ := strconv.ParseInt(r.col(name).atom(), 10, 64)
	return n
}

// diff lists what parts of the work pick, and the rows that can be refused at once.
func (s *session) diff(d differ, parts func(*differ) ([]change, []refusal)) ([]change, []refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.m, d.applied = s.m, s.applied
	d.follow(s.follower(d).Take(d.state))
	if d.elems != nil {
		d.changedElems = s.elems.Take(d.state)
	}
	s.writing = true
	s.clearTouched()
	cs, bad := parts(&d)
	sortChanges(s.m.schema, cs)
	s.pending = map[plan.RowID]*wanted{}
	for _, c := range cs {
		if c.w != nil {
			s.pending[c.w.key] = c.w
		}
	}
	return cs, bad
}

// follower is of the rows that d compares.
func (s *session) follower(d differ) *plan.Follower[plan.RowID] {
	if d.shrinking {
		return &s.shrunk
	}
	return &s.grown
}

// settle ends what diff began. It looks at every row that was written or changed in between: those that are now as
// wanted are noted; if one is not, though none was refused, somebody else was at it at the same time.
func (s *session) settle(d differ, failed bool) {
	s.mu.Lock()
	for key, w := range s.pending {
		s.applied[key] = w
		s.m.touched[key] = plan.None{}
	}
	stray := false
	for e := range s.m.touchedElems {
		_, want := d.elems[e]
		_, have := s.m.elems[e]
		stray = stray || want != have
	}
	clear(s.m.touchedElems)
	stray = s.strayed() || stray
	if !stray && !failed {
		s.done(d)
	}
	s.writing, s.pending = false, nil
	s.mu.Unlock()
	if stray && !failed {
		s.changed()
	}
}

// done notes that the database holds what d compared.
func (s *session) done(d differ) {
	s.follower(d).Done(d.state)
	if d.elems != nil {
		s.elems.Done(d.state)
	}
}
