package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peer is a node that is probed. The Prober's loop owns all but the signs.
type peer struct {
	Target
	p           *Prober
	ctx         context.Context
	stop        context.CancelFunc
	host, agent atomic.Int64 // Signs
	direct      atomic.Int64
	since       time.Duration

	due       time.Duration // the next knock that is a matter of course
	knocked   time.Duration // the last one
	session   *session
	failures  int
	notBefore time.Duration // the next session
	measured  time.Duration // when the host, or its agent, was last asked for the sake of the answer's time
	complaint string
	turn      int // which address is next
}

// end is that of a session.
type end struct {
	s   *session
	err error
}

const (
	// checkEvery is how often the time to a node and back is measured; beats tell nothing of it, nor do knocks whose
	// answers wait to be collected.
	checkEvery = 10 * time.Second
	// lastPause is the longest pause before a session after others that failed. A handshake costs more than a knock.
	lastPause = 2 * time.Second
)

func newPeer(ctx context.Context, p *Prober, t Target) *peer {
	now := p.sinceStart()
	x := &peer{Target: t, p: p, measured: now - checkEvery, since: now}
	x.ctx, x.stop = context.WithCancel(ctx)
	x.host.Store(int64(now)) // it is given the benefit of the doubt
	x.agent.Store(int64(now))
	return x
}

// askDue does what is due at a time, and waits for nothing. Where agents have a health service it keeps a session with
// this one, and knocks at the host's door when the session is silent; elsewhere it knocks as a matter of course. Knocks
// come fast while an answer is overdue: a few packets may be lost and nobody is dead.
func (x *peer) askDue(now time.Duration) {
	if len(x.Addrs) == 0 {
		return
	}
	port, answered, late := x.p.door, x.host.Load(), x.p.knockInterval()+x.p.o.Total/8
	if x.p.o.Port != 0 {
		port, answered, late = x.p.o.Port, x.agent.Load(), x.p.beatInterval()*3/2
	}
	silence := now - time.Duration(answered)
	hurry := silence > late && silence < 2*x.p.o.Total && now-x.knocked >= x.p.o.Total/8
	course := now >= x.due && (x.p.o.Port == 0 || silence > late)
	if hurry || course {
		timed := x.p.o.Port == 0 && now-x.measured >= checkEvery
		if timed {
			x.measured = now
		}
		x.knocked, x.due = now, now+x.p.knockInterval()
		x.knockAtHost(port, timed, silence > late)
	}
	if x.p.o.Port != 0 {
		x.keepSession(now, silence, hurry)
	}
}

// knockAtHost asks the host once, and while it is silent at its address on the primary network, too.
func (x *peer) knockAtHost(port int, timed, silent bool) {
	x.p.knocker.knockAt(x.nextAddr(port), timed, func(a answer) {
		if timed {
			x.p.noteTimedKnock(x, a.after)
		} else {
			x.hostAnswered()
		}
	})
	if silent && len(x.Direct) > 0 {
		to := netip.AddrPortFrom(x.Direct[x.turn%len(x.Direct)], uint16(x.p.door))
		x.p.knocker.knockAt(to, false, func(answer) { x.direct.Store(int64(x.p.sinceStart())) })
	}
}

// keepSession begins a session if there is no session. Otherwise it asks for an answer, or ends the session when it is
// silent.
func (x *peer) keepSession(now, silence time.Duration, hurry bool) {
	switch {
	case x.session == nil && now >= x.notBefore:
		x.session = newSession(x, x.nextAddr(x.p.o.Port))
		go x.holdSession(x.session)
	case x.session == nil:
	case silence >= x.p.o.Total && now-x.session.began >= x.p.o.Total:
		x.session.stop() // it may hang for long in a connection of which the other side knows nothing any more
	case hurry || now-x.measured >= checkEvery:
		x.measured = now
		x.session.checkHealth()
	}
}

// holdSession runs a session, and hands its end to the loop.
func (x *peer) holdSession(s *session) {
	err := s.runSession()
	select {
	case x.p.ends <- end{s, err}:
	case <-x.ctx.Done():
	}
}

// sessionEnded lets another begin at once if it was a good one; those that fail come in growing distance.
func (x *peer) sessionEnded(e end) {
	x.session = nil
	if e.s.good.Load() {
		x.failures, x.complaint = 0, ""
		return
	}
	x.notBefore = x.p.sinceStart() + min(x.p.knockInterval()<<min(x.failures, 8), lastPause)
	x.failures++
	if e.err != nil && e.err.Error() != x.complaint {
		x.complaint = e.err.Error()
		x.p.o.Log.Warn("no session with the agent's health service", "node", x.Node, "address", e.s.to, "error", e.err)
	}
}

// nextAddr is the address to try: each in its turn, for one family may fail alone.
func (x *peer) nextAddr(port int) netip.AddrPort {
	x.turn++
	return netip.AddrPortFrom(x.Addrs[x.turn%len(x.Addrs)], uint16(port))
}

func (x *peer) currentSigns() Signs {
	return Signs{Host: time.Duration(x.host.Load()), Agent: time.Duration(x.agent.Load()),
		Direct: time.Duration(x.direct.Load()), Since: x.since}
}

func (x *peer) hostAnswered() { x.host.Store(int64(x.p.sinceStart())) }

func (x *peer) agentAnswered() {
	now := int64(x.p.sinceStart())
	x.host.Store(now)
	x.agent.Store(now)
}

// dialAgent connects to the agent, for as long as that is of use. A refusal is a sign of the host too.
func (x *peer) dialAgent(ctx context.Context, to netip.AddrPort) net.Conn {
	d := net.Dialer{Timeout: x.p.o.Total, KeepAliveConfig: net.KeepAliveConfig{Enable: false}, Control: setAbruptClose}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if isAnswer(err) {
		x.hostAnswered()
	}
	if err != nil {
		return nil
	}
	return c
}

// setAbruptClose has a connection reset when it is closed; see knock.
func setAbruptClose(_, _ string, c syscall.RawConn) (err error) {
	e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	})
	return errors.Join(err, e)
}
