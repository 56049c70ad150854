package kube

import (
	"context"
	"fmt"
	"slices"
)

// Versions says, by the plural of a kind, up to which resourceVersion a program has followed the objects that decide
// which objects have claims to pods' packets. Versions are compared within a kind only (KEP-5504).
type Versions map[string]string

// waiter waits until a table's watch has brought everything up to a version.
type waiter struct {
	version string
	reached chan struct{}
}

// Seen returns what another program has followed once it has all that this one's world has. It names versions of
// objects and of their ends, not those of lists and bookmarks, which the watch of a kind that does not change reaches
// late. The exception is a list that lacks objects that were known: their ends have no version here.
func (s *Source) Seen() Versions {
	return s.versionsBy((*table).seenVersion)
}

// Newest returns the versions of the last objects, or of their ends, that have come. A program that follows the same
// history reaches them as soon as its watches bring them. Kinds that are restless are left out.
func (s *Source) Newest() Versions {
	v := s.versionsBy(func(t *table) string { return t.newest })
	for _, k := range s.kinds {
		if k.isRestless() {
			delete(v, k.pluralName())
		}
	}
	return v
}

func (s *Source) versionsBy(of func(*table) string) Versions {
	v := Versions{}
	for i, k := range s.kinds {
		if !k.decidesClaims() {
			continue
		}
		t := s.tables[i]
		t.mu.Lock()
		if version := of(t); version != "" {
			v[k.pluralName()] = version
		}
		t.mu.Unlock()
	}
	return v
}

// SeenPods says whether Seen names a version of pods that is newer than the first list of them, and so than the end of
// each pod that this program has never seen. The loop that takes changes asks: it waits for no table, for a table may
// wait for room among the changes.
func (s *Source) SeenPods() bool { return s.tableFor("pods", "").pastFirst.Load() }

func (t *table) notePastFirst() { t.pastFirst.Store(Older(t.first, t.newest)) }

// Reached returns when this program's watches have brought everything up to the versions, and the world has it.
func (s *Source) Reached(ctx context.Context, v Versions) error {
	if err := s.Brought(ctx, v); err != nil {
		return err
	}
	return s.Applied(ctx)
}

// Brought returns when this program's watches have brought everything up to the versions. A kind that is not known here
// decides nothing here.
func (s *Source) Brought(ctx context.Context, v Versions) error {
	for i, k := range s.kinds {
		plural, t := k.pluralName(), s.tables[i]
		if v[plural] == "" || !k.decidesClaims() {
			continue
		}
		w := t.waitForVersion(v[plural])
		select {
		case <-w.reached:
		case <-ctx.Done():
			t.giveUp(w)
			return fmt.Errorf("the watch of %s has not brought version %q: %w", plural, v[plural], context.Cause(ctx))
		}
	}
	return nil
}

// waitForVersion begins to wait until the watch has brought everything up to a version.
func (t *table) waitForVersion(version string) waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := waiter{version, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.wakeWaiting()
	return w
}

func (t *table) giveUp(w waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(o waiter) bool { return o == w })
}

// wakeWaiting ends the waits for versions that have been reached.
func (t *table) wakeWaiting() {
	t.waiting = slices.DeleteFunc(t.waiting, func(w waiter) bool {
		is := t.hasReached(w.version)
		if is {
			close(w.reached)
		}
		return is
	})
}

// hasReached says whether the watch has brought everything up to a version. How far it was in a history that has ended
// says nothing about one of the history that followed.
func (t *table) hasReached(version string) bool {
	return !t.forked && t.latest != "" && !Older(t.latest, version)
}

// seenVersion is a version that another program's watch reaches once it has brought all that was sent here.
func (t *table) seenVersion() string {
	if end := t.unnamedEnd(); end != "" && isNewer(end, t.newest) {
		return end
	}
	if t.lacks != "" && isNewer(t.lacks, t.newest) {
		return t.lacks
	}
	return t.newest
}

// noteSeenVersion notes the version of something that the world gets.
func (t *table) noteSeenVersion(version string) {
	if isNewer(version, t.newest) {
		t.newest = version
		t.notePastFirst()
	}
}

// HasReached says whether Reached need not wait for a watch.
func (s *Source) HasReached(v Versions) bool {
	for plural, version := range v {
		if t := s.tableFor(plural, ""); t != nil {
			t.mu.Lock()
			reached := t.hasReached(version)
			t.mu.Unlock()
			if !reached {
				return false
			}
		}
	}
	return true
}
