package controller

import (
	"cmp"
	"context"
	"time"

	"github.com/egret-net/egret/internal/heal"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

const (
	// parallelWrites bounds the writes to different objects at one time. Those that no packet waits for are fewer.
	parallelWrites = 32
	parallelWords  = 16
	writeTimeout   = 5 * time.Second
	firstBackoff   = 10 * time.Millisecond
	lastBackoff    = 5 * time.Second
	// rewordsAfter is how long after a write of an object only messages of its conditions become different. Every agent
	// receives the object whole, and the nodes that a move waits for change with each report. The time doubles with
	// each such write, up to lastRewords: the longer a move takes, the more agents there are.
	rewordsAfter = time.Second
	lastRewords  = 4 * time.Second
)

// target is an object that is written.
type target struct {
	kind world.Kind
	key  string
}

// outbox is the state of writes, by object: one at a time, none before the world has seen the last one, and with
// growing pauses while the object does not become what it should be. Only one that makes or deletes the object may be
// sent again before: the API server refuses it then. What packets wait for is sent before mere words,
// and what rewords an object is sent rarely (rewordsAfter), as it is then. A value that somebody else overwrites
// is written again, with growing pauses, too. It belongs to one leader's term.
type outbox struct {
	ctx     context.Context // the term
	results chan<- result
	later   func(time.Duration, func()) // has something done beside the loop, after a time
	letters map[target]*letter
	urgent  []target // that wait for others to be written
	words   []target
	writing int // how many are busy
}

// letter is one object's part of an outbox.
type letter struct {
	busy     bool   // a write is under way
	waking   bool   // a result will come when notBefore is over
	isUrgent bool   // it is among urgent
	isWord   bool   // it is among words; it may have become urgent since
	written  string // the version that the last write made
	attempts int    // since the object was last as it should be
	next     time.Time
	sent     time.Time     // when the last write was
	rewords  time.Duration // how long messages stay after that; 0: rewordsAfter

	settled  bool      // the object is as it should be
	heals    bool      // it was, until somebody else wrote over it
	rewrites heal.Pace // of that
}

// result says that a write ended, or that a pause is over.
type result struct {
	ctx     context.Context
	target  target
	woken   bool
	version string
	err     error
}

func newOutbox(ctx context.Context, results chan<- result) *outbox {
	return &outbox{ctx: ctx, results: results, later: runLater, letters: map[target]*letter{}}
}

func runLater(after time.Duration, do func()) {
	if after == 0 {
		go do()
	} else {
		time.AfterFunc(after, do)
	}
}

// noteSettled notes that an object is as it should be, and says whether no write of it is under way.
func (o *outbox) noteSettled(t target, now time.Time) bool {
	l := o.letters[t]
	switch {
	case l == nil:
		return true
	case l.busy:
		return false
	}
	l.attempts, l.next, l.settled, l.heals = 0, time.Time{}, true, false
	if !l.waking && !l.isUrgent && !l.isWord && l.rewrites.Rested(now) && l.untilRewords(now) <= 0 {
		delete(o.letters, t)
	}
	return true
}

// noteShown notes that the API shows a new version of an object that is not what it should be. If it was that, somebody
// else wrote it.
func (o *outbox) noteShown(t target) {
	if l := o.letterFor(t); l.settled {
		l.heals = true
	}
}

// noteDecided notes that an object should be something else than before: a write of that heals nothing.
func (o *outbox) noteDecided(t target) {
	l := o.letterFor(t)
	l.settled, l.heals = false, false
}

// letterFor is that of an object; a new one is of an object that was as it should be.
func (o *outbox) letterFor(t target) *letter {
	if o.letters[t] == nil {
		o.letters[t] = &letter{settled: true}
	}
	return o.letters[t]
}

// writeObject sends an object that was seen at w's version, unless that must wait: then a later result, or a later
// version, calls for it again. It says whether it did.
func (o *outbox) writeObject(t target, w *kube.Write, now time.Time, send func(context.Context) (string, error)) bool {
	l := o.letterFor(t)
	if l.busy || l.written != "" && kube.Older(w.Version, l.written) {
		return false
	}
	wait := l.next.Sub(now)
	if w.Rewords {
		wait = max(wait, l.untilRewords(now))
	}
	if l.heals {
		wait = max(wait, l.rewrites.Wait(now))
	}
	switch {
	case wait > 0:
		o.scheduleWake(t, l, wait)
		return false
	case !o.hasRoom(w.Urgent):
		o.queueWrite(t, l, w.Urgent)
		return false
	}
	if l.heals {
		l.rewrites.Rewritten(now)
	}
	l.rewords = l.nextRewords(w.Rewords, now)
	l.busy, l.settled, l.heals, l.next, l.sent = true, false, false, now.Add(retryPause(l.attempts)), now
	l.attempts++
	o.writing++
	o.later(0, func() { o.deliverWrite(t, send) })
	return true
}

// untilRewords is how long an object keeps its messages from now. It is bounded where the clock was set back.
func (l *letter) untilRewords(now time.Time) time.Duration {
	pause := cmp.Or(l.rewords, rewordsAfter)
	return min(l.sent.Add(pause).Sub(now), pause)
}

// nextRewords returns how long messages stay after a write. An object that has rested begins again.
func (l *letter) nextRewords(rewords bool, now time.Time) time.Duration {
	pause := cmp.Or(l.rewords, rewordsAfter)
	if !rewords || now.Sub(l.sent) >= 2*pause {
		return 0
	}
	return min(2*pause, lastRewords)
}

func (o *outbox) hasRoom(urgent bool) bool {
	return o.writing < parallelWords || urgent && o.writing < parallelWrites
}

func (o *outbox) queueWrite(t target, l *letter, urgent bool) {
	switch {
	case urgent && !l.isUrgent:
		o.urgent, l.isUrgent = append(o.urgent, t), true
	case !urgent && !l.isWord:
		o.words, l.isWord = append(o.words, t), true
	}
}

// nextQueued takes an object from the queues whose write has room now, the most urgent first.
func (o *outbox) nextQueued() (t target, is bool) {
	switch {
	case len(o.urgent) > 0 && o.hasRoom(true):
		t, o.urgent = o.urgent[0], o.urgent[1:]
		o.letters[t].isUrgent = false
	case len(o.words) > 0 && o.hasRoom(false):
		t, o.words = o.words[0], o.words[1:]
		o.letters[t].isWord = false
	default:
		return target{}, false
	}
	return t, true
}

func (o *outbox) deliverWrite(t target, send func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(o.ctx, writeTimeout)
	version, err := send(ctx)
	cancel()
	o.reportResult(result{ctx: o.ctx, target: t, version: version, err: err})
}

func (o *outbox) reportResult(r result) {
	select {
	case o.results <- r:
	case <-o.ctx.Done():
	}
}

func (o *outbox) scheduleWake(t target, l *letter, after time.Duration) {
	if !l.waking {
		l.waking = true
		o.later(after, func() { o.reportResult(result{ctx: o.ctx, target: t, woken: true}) })
	}
}

// takeResult takes a result. It says whether it is of this term.
func (o *outbox) takeResult(r result) bool {
	l := o.letters[r.target]
	if r.ctx != o.ctx || l == nil {
		return false
	}
	if r.woken {
		l.waking = false
		return true
	}
	l.busy = false
	o.writing--
	if r.err == nil {
		l.written = r.version
	}
	return true
}

// forgetWritten has no object wait until the world sees its last write.
func (o *outbox) forgetWritten() {
	for _, l := range o.letters {
		l.written = ""
	}
}

// retryPause is the pause after the write that follows so many others.
func retryPause(attempts int) time.Duration {
	return min(firstBackoff<<min(attempts, 16), lastBackoff)
}
