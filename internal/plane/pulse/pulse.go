// Package pulse knows which of the processes that a node depends on answer: a stopped process keeps its sockets, and
// whoever asks it something waits.
//
// In: a question that such a process answers at once. Out: Err, while it does not; Do and On, which end what needs the
// process when it falls silent, and do not begin it before it answers again; Changed.
package pulse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// every is the pause between an answer and the next question, and again that after a question that could not be
	// asked.
	every = time.Second
	again = 200 * time.Millisecond
	// patience is how long an answer may take: northd and ovn-controller are busy for seconds where there is much to
	// compute.
	patience = 3 * time.Second
)

// Question is asked of a process, and returns when it has answered. It may wait as long as ctx lasts.
type Question func(ctx context.Context) error

// Pulse is that of one process.
type Pulse struct {
	name    string
	ask     Question
	changed chan struct{}

	mu     sync.Mutex
	alive  context.Context // ends, with the reason, when the process falls silent
	silent context.CancelCauseFunc
	met    bool // it has answered once
}

// Start asks the process of that name until ctx ends. It counts as answering until its time is over.
func Start(ctx context.Context, name string, ask Question) *Pulse {
	p := &Pulse{name: name, ask: ask, changed: make(chan struct{}, 1)}
	p.alive, p.silent = context.WithCancelCause(context.Background())
	go p.askUntilDone(ctx)
	return p
}

var errNoAnswer = errors.New("it is stopped, or overloaded")

func (p *Pulse) askUntilDone(ctx context.Context) {
	over := time.NewTimer(patience)
	defer over.Stop()
	last := errNoAnswer
	for ctx.Err() == nil {
		answer := make(chan error, 1)
		go func() { answer <- p.ask(ctx) }()
		for asking := true; asking; {
			select {
			case last = <-answer:
				asking = false
			case <-over.C:
				p.markSilent(last)
			}
		}
		pause := again
		if last == nil {
			p.markAlive()
			over.Reset(every + patience)
			pause, last = every, errNoAnswer
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (p *Pulse) markSilent(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent(fmt.Errorf("%s does not answer: %w", p.name, why))
	p.signalChange()
}

func (p *Pulse) markAlive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.met = true
	if p.alive.Err() == nil {
		return
	}
	p.alive, p.silent = context.WithCancelCause(context.Background())
	p.signalChange()
}

func (p *Pulse) signalChange() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Changed is signalled when the process falls silent, and when it answers again.
func (p *Pulse) Changed() <-chan struct{} { return p.changed }

// Err is nil while the process answers.
func (p *Pulse) Err() error { return context.Cause(p.aliveContext()) }

func (p *Pulse) aliveContext() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive
}

// NotMetProblem returns what to tell people while the process has not answered once, or "".
func (p *Pulse) NotMetProblem() string {
	p.mu.Lock()
	met := p.met
	p.mu.Unlock()
	if met {
		return ""
	}
	return cmp.Or(p.Problem(), fmt.Sprintf("process/%s: it has not answered yet", p.name))
}

// Problem is what to tell people while the process does not answer, or "".
func (p *Pulse) Problem() string {
	if err := p.Err(); err != nil {
		return fmt.Sprintf("process/%s: %v: see its log, and `ps -o stat` for a T", p.name, err)
	}
	return ""
}

// Do does something that needs the process. It must end with its context.
func (p *Pulse) Do(ctx context.Context, do func(context.Context) error) error {
	alive := p.aliveContext()
	if alive.Err() != nil {
		return context.Cause(alive)
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(alive, func() { cancel(context.Cause(alive)) })()
	err := do(bounded)
	if err != nil && alive.Err() != nil {
		return errors.Join(context.Cause(alive), err)
	}
	return err
}
