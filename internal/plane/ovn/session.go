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

// openSession connects and reads the database.
func openSession(ctx context.Context, endpoint, db string, log *slog.Logger, changed func(),
	seen func(int64)) (*session, error) {
	s := &session{log: log, changed: changed, seen: seen, applied: map[plan.RowID]*wanted{}}
	s.followTables(db)
	s.mu.Lock() // notifications wait until the first copy is in place
	defer s.mu.Unlock()
	var err error
	if s.conn, err = dialServer(ctx, endpoint, db, s.onUpdate); err != nil {
		return nil, err
	}
	s.m = newMirror(s.conn.schema)
	u, err := s.conn.monitorTables(ctx, s.conn.schema.monitorRequests(db == dbSouth))
	if err == nil {
		err = s.m.applyUpdate(u)
	}
	if err != nil {
		s.conn.closeConn()
		return nil, err
	}
	s.clearTouched()
	return s, nil
}

// followTables begins to follow a database's tables of plans.
func (s *session) followTables(db string) {
	table := plan.InNB
	if db == dbSouth {
		table = plan.InSB
	}
	s.grown, s.shrunk = plan.Follow[plan.RowID](table), plan.Follow[plan.RowID](table)
	s.elems = plan.Follow[plan.SetElem](plan.InSetElems)
}

func (s *session) isAlive() bool { return s.conn.isAlive() }

// ensureGlobal makes the NB_Global row of a database that nobody has initialised yet.
func (s *session) ensureGlobal(ctx context.Context) error {
	if s.hasGlobal() {
		return nil
	}
	row := ovsdb.Row{"ipsec": false} // libovsdb leaves an empty row out of the message
	_, err := s.conn.runTransaction(ctx, []ovsdb.Operation{{Op: ovsdb.OperationInsert, Table: tableGlobal, Row: row}})
	if err != nil && s.isAlive() && s.hasGlobal() {
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
	err := s.m.applyUpdate(u)
	again := err == nil && !s.writing && s.hasStrayed()
	s.mu.Unlock()
	if err != nil {
		s.log.Error("lost track of the database, reading it anew", "db", s.conn.db, "err", err)
		s.conn.closeConn()
		return
	}
	if again {
		s.changed()
	}
	if u[tableGlobal] != nil {
		s.seen(s.globalNumber("hv_cfg"))
	}
}

// hasStrayed looks at the rows that have changed, forgets those that are no longer as they were applied, and says
// whether there are any.
func (s *session) hasStrayed() bool {
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
		if held, err := s.m.holdsRow(w); !held || err != nil {
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

// globalNumber reads a number of NB_Global.
func (s *session) globalNumber(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.m.ours[plan.RowID{Table: tableGlobal}]
	if r == nil {
		return 0
	}
	n, _ := strconv.ParseInt(r.valueOf(name).scalarAtom(), 10, 64)
	return n
}

// diffRows lists what parts of the work pick, and the rows that can be refused at once.
func (s *session) diffRows(d differ, parts func(*differ) ([]change, []refusal)) ([]change, []refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.m, d.applied = s.m, s.applied
	d.followChanges(s.followerOf(d).Take(d.state))
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

// followerOf is of the rows that d compares.
func (s *session) followerOf(d differ) *plan.Follower[plan.RowID] {
	if d.shrinking {
		return &s.shrunk
	}
	return &s.grown
}

// settleDiff ends what diff began. It looks at every row that was written or changed in between: those that are now as
// wanted are noted; if one is not, though none was refused, somebody else was at it at the same time.
func (s *session) settleDiff(d differ, failed bool) {
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
	stray = s.hasStrayed() || stray
	if !stray && !failed {
		s.markApplied(d)
	}
	s.writing, s.pending = false, nil
	s.mu.Unlock()
	if stray && !failed {
		s.changed()
	}
}

// markApplied notes that the database holds what d compared.
func (s *session) markApplied(d differ) {
	s.followerOf(d).Done(d.state)
	if d.elems != nil {
		s.elems.Done(d.state)
	}
}
