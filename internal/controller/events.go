package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/kube"
)

const (
	// eventBacklog is how many Events wait, and how many beside these for being tried again; more are dropped, for they
	// are not worth waiting for.
	eventBacklog = 4096
	eventPosters = 4
	// eventAttempts bounds how often an Event is posted. The pauses double, from one pulse on: they are two minutes.
	eventAttempts = 8
	// lastEvents is how long a controller that ends waits for the Events that it has yet to post.
	lastEvents = 2 * time.Second
)

// posting is a pending Event.
type posting struct {
	kube.Posting
	failed int // how often that has failed
	pulses int // until it is tried again
}

// poster posts Events beside the loop, to which its fields belong.
type poster struct {
	log      *slog.Logger
	writer   Writer
	failures prometheus.Counter
	pending  chan posting
	failed   chan posting // those that could not be posted
	told     []posting    // to be posted at the next pulse
	late     []posting    // to be posted once more, some pulses later
}

func newPoster(writer Writer, failures prometheus.Counter, log *slog.Logger) *poster {
	return &poster{log: log, writer: writer, failures: failures,
		pending: make(chan posting, eventBacklog), failed: make(chan posting)}
}

// queueEvent has an Event posted at the next pulse, within a second. Programs that act on a status must not wait for
// text that only people read, nor share API server and processors with it.
func (p *poster) queueEvent(e kube.Event, now time.Time) {
	p.told = append(p.told, posting{Posting: kube.NewPosting(e, now)})
}

// handEvents gives what waits to those who post Events.
func (p *poster) handEvents() {
	for _, one := range p.told {
		select {
		case p.pending <- one:
		default:
			p.failures.Inc()
		}
	}
	p.told = nil
}

// putOff has an Event that could not be posted tried again some pulses later, unless that was often enough.
func (p *poster) putOff(one posting) {
	if one.failed == eventAttempts || len(p.late) == eventBacklog {
		p.failures.Inc()
		return
	}
	one.pulses = 1 << (one.failed - 1)
	p.late = append(p.late, one)
}

// handLate is called at each pulse: it has those posted for which that was the last one to wait for.
func (p *poster) handLate() {
	left := p.late[:0]
	for _, one := range p.late {
		if one.pulses--; one.pulses > 0 {
			left = append(left, one)
		} else {
			p.told = append(p.told, one)
		}
	}
	p.late = left
}

// startEvents posts Events beside the loop. end posts what is left, when ctx is done: another leader does not know what
// this one has decided.
func (p *poster) startEvents(ctx context.Context) (end func()) {
	var posters sync.WaitGroup
	for range eventPosters {
		posters.Go(func() { p.postEvents(ctx) })
	}
	return func() {
		p.handEvents()
		close(p.pending)
		posted := make(chan struct{})
		go func() { posters.Wait(); close(posted) }()
		select {
		case <-posted:
		case <-time.After(lastEvents):
		}
	}
}

// postEvents brings back to the loop what may be posted later.
func (p *poster) postEvents(ctx context.Context) {
	for one := range p.pending {
		timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		err := p.writer.PostEvent(timed, one.Posting)
		cancel()
		if err != nil && ctx.Err() == nil {
			p.notPosted(ctx, one, err)
		}
	}
}

func (p *poster) notPosted(ctx context.Context, one posting, err error) {
	p.log.Warn("event not posted", "attempt", one.failed+1, "error", err)
	one.failed++
	if !kube.Passes(err) {
		one.failed = eventAttempts
	}
	select {
	case p.failed <- one:
	case <-ctx.Done():
	}
}
