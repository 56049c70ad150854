package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/egret-net/egret/internal/world"
)

const (
	// parallelWrites bounds the writes to different objects at one time.
	parallelWrites = 32
	writeTimeout   = 5 * time.Second
	firstBackoff   = 10 * time.Millisecond
	lastBackoff    = 5 * time.Second
)

// target is an object that is written.
type target struct {
	kind world.Kind
	key  string
}

// outbox is the state of writes, by object: one at a time, none before the world has seen the last one, and with
// growing pauses while the object does not become what it should be. It belongs to one leader's term.
type outbox struct {
	ctx     context.Context // the term
	slots   chan struct{}
	results chan<- result
	letters map[target]*letter
	writing int // how many are busy
}

// letter is one object's part of an outbox.
type letter struct {
	busy     bool   // a write is under way
	waking   bool   // a result will come when notBefore is over
	written  string // the version that the last write made
	attempts int    // since the object was last as it should be
	next     time.Time
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
	return &outbox{ctx: ctx, slots: make(chan struct{}, parallelWrites), results: results,
		letters: map[target]*letter{}}
}

// settled notes that an object is as it should be, and says whether no write of it is under way.
func (o *outbox) settled(t target) bool {
	l := o.letters[t]
	switch {
	case l == nil:
		return true
	case l.busy:
		return false
	case l.waking:
		l.attempts, l.next = 0, time.Time{}
	default:
		delete(o.letters, t)
	}
	return true
}

// write sends an object that was seen at version, unless that must wait: then a later result, or a later version, calls
// for it again. It says whether it did.
func (o *outbox) write(t target, version string, now time.Time, send func(context.Context) (string, error)) bool {
	l := o.letters[t]
	if l == nil {
		l = &letter{}
		o.letters[t] = l
	}
	if l.busy || l.written != "" && older(version, l.written) {
		return false
	}
	if now.Before(l.next) {
		o.wake(t, l, l.next.Sub(now))
		return false
	}
	l.busy, l.next = true, now.Add(backoff(l.attempts))
	l.attempts++
	o.writing++
	go o.deliver(t, send)
	return true
}

func (o *outbox) deliver(t target, send func(context.Context) (string, error)) {
	select {
	case o.slots <- struct{}{}:
	case <-o.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(o.ctx, writeTimeout)
	version, err := send(ctx)
	cancel()
	<-o.slots
	o.report(result{ctx: o.ctx, target: t, version: version, err: err})
}

func (o *outbox) report(r result) {
	select {
	case o.results <- r:
	case <-o.ctx.Done():
	}
}

func (o *outbox) wake(t target, l *letter, after time.Duration) {
	if !l.waking {
		l.waking = true
		time.AfterFunc(after, func() { o.report(result{ctx: o.ctx, target: t, woken: true}) })
	}
}

// ended takes a result. It says whether it is of this term.
func (o *outbox) ended(r result) bool {
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

// backoff is the pause after the write that follows so many others.
func backoff(attempts int) time.Duration {
	return min(firstBackoff<<min(attempts, 16), lastBackoff)
}

func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}
