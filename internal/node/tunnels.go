package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/world"
)

// settled is how long a session must be up after it was down before the node counts again. Each change of mind moves connections, and a link that
// comes and goes would move them again and again.
const settled = time.Second

// regainWait is how long the others may take to be heard once the first of them is, after all had fallen silent: sessions that are down send every second, and
// come up by themselves, one by one.
const regainWait = 1200 * time.Millisecond

// atOnce is within what time all must have fallen silent: a session's own 400 ms, and some for the news of it. Who falls silent later than others have is silent himself.
const atOnce = 500 * time.Millisecond

// ears turn what BFD says into facts of the world: a node that falls silent is down at once, and up again when it has been heard for a while. When all of several are
// silent it is this host that is deaf, or stood still. That tells nothing of any of them, and to count those as down that are heard again last would move
// connections through them.
type ears struct {
	tell func(node string, t world.Tunnel)
	// alone is told when all that were heard have fallen silent, and when the first of them is heard again.
	alone func(bool)
	after func(time.Duration, func()) (stop func() bool)
	now   func() time.Time
	log   *slog.Logger
	heard map[string]*heard // by node
	quiet bool              // nobody is heard

	deaf   bool         // who is silent is not down
	regain func() bool  // stops the time after which that is over; nil if it does not run
	latest []ovs.Tunnel // what was heard last
}

type heard struct {
	told world.Tunnel
	fell time.Time   // when it was first down; zero while it is not
	stop func() bool // of the time that a returned node has to wait; nil if it does not
}

// listen feeds the loop with the state of the tunnels, until ctx ends.
func (a *Agent) listen(ctx context.Context, db *ovs.DB) {
	expired := make(chan func())
	e := &ears{
		tell: func(node string, t world.Tunnel) {
			_ = a.loop.Offer(ctx, func(w *world.World) []world.Touch { return w.SetTunnel(node, t) }) // its only error is that the agent ends
		},
		alone: func(is bool) {
			_ = a.loop.Offer(ctx, func(*world.World) []world.Touch { a.holding.alone(is); return nil })
		},
		after: func(d time.Duration, f func()) func() bool {
			return time.AfterFunc(d, func() {
				select {
				case expired <- f:
				case <-ctx.Done():
				}
			}).Stop
		},
		now: time.Now, log: a.log, heard: map[string]*heard{},
	}
	for {
		if tunnels, err := db.Tunnels(ctx); err == nil { // else what was heard last stands until the database is back, which is a change
			e.hear(tunnels)
		}
		select {
		case <-ctx.Done():
			return
		case <-db.TunnelsChanged():
		case f := <-expired:
			f()
		}
	}
}

// hear takes in the state of all tunnels.
func (e *ears) hear(all []ovs.Tunnel) {
	e.latest = all
	there, up, down := map[string]bool{}, count(all, world.TunnelUp), count(all, world.TunnelDown)
	for _, t := range all {
		there[t.Node] = true
		e.note(t)
	}
	e.judge(up, down)
	for _, t := range all {
		e.one(t.Node, e.heard[t.Node], stateOf(t))
	}
	for node, h := range e.heard {
		if !there[node] {
			e.one(node, h, world.TunnelUnknown)
			delete(e.heard, node)
		}
	}
	if quiet := up == 0 && (down > 0 || e.quiet); quiet != e.quiet {
		e.log.Info("whether any node is heard", "heard", !quiet, "silent", down)
		e.quiet = quiet
		e.alone(quiet)
	}
}

// note keeps when a node fell silent.
func (e *ears) note(t ovs.Tunnel) {
	h := e.heard[t.Node]
	if h == nil {
		h = &heard{}
		e.heard[t.Node] = h
	}
	switch {
	case stateOf(t) != world.TunnelDown:
		h.fell = time.Time{}
	case h.fell.IsZero():
		h.fell = e.now()
	}
}

// together says whether all that are silent fell so at once.
func (e *ears) together() bool {
	var first, last time.Time
	for _, h := range e.heard {
		if h.fell.IsZero() {
			continue
		}
		if first.IsZero() || h.fell.Before(first) {
			first = h.fell
		}
		if h.fell.After(last) {
			last = h.fell
		}
	}
	return last.Sub(first) < atOnce
}

func count(all []ovs.Tunnel, state world.Tunnel) int {
	n := 0
	for _, t := range all {
		if stateOf(t) == state {
			n++
		}
	}
	return n
}

// judge says of this host whether it hears.
func (e *ears) judge(up, down int) {
	switch {
	case up == 0 && down > 1 && (e.deaf || e.together()):
		if e.regain != nil {
			e.regain()
			e.regain = nil
		}
		e.deaf = true
	case e.deaf && up > 0 && e.regain == nil:
		e.hearAgain()
	}
}

func (e *ears) hearAgain() {
	var over bool
	stop := e.after(regainWait, func() {
		if !over {
			e.deaf, e.regain = false, nil
			e.hear(e.latest)
		}
	})
	e.regain = func() bool { over = true; return stop() }
}

// stateOf: a session that never came up may have no other end, for that node's agent is of a version without. So it is when our own ovs-vswitchd
// has been restarted: all sessions are down then, and nothing is wrong with the others.
func stateOf(t ovs.Tunnel) world.Tunnel {
	switch {
	case t.Up:
		return world.TunnelUp
	case t.WasUp:
		return world.TunnelDown
	}
	return world.TunnelUnknown
}

func (e *ears) one(node string, h *heard, now world.Tunnel) {
	if h.stop != nil && now == world.TunnelUp {
		return // it waits
	}
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	switch {
	case now == h.told, e.deaf && now == world.TunnelDown:
	case now == world.TunnelUp && h.told == world.TunnelDown:
		e.wait(node, h)
	default:
		e.say(node, h, now)
	}
}

func (e *ears) wait(node string, h *heard) {
	var over bool
	stop := e.after(settled, func() {
		if !over && e.heard[node] == h {
			h.stop = nil
			e.say(node, h, world.TunnelUp)
		}
	})
	h.stop = func() bool { over = true; return stop() }
}

func (e *ears) say(node string, h *heard, now world.Tunnel) {
	e.log.Info("tunnel to another node", "node", node, "state", now, "was", h.told)
	h.told = now
	e.tell(node, now)
}
