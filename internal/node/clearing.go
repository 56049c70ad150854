package node

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/world"
)

var errNoManagementPort = errors.New("one of the two nodes has no management port")

// clearing carries out what clearance.Machine decides about other nodes. Machine, facts and former belong to the loop.
type clearing struct {
	machine clearance.Machine
	facts   clearance.Facts
	former  formerLed // by a previous process

	// ask asks the agent of a node, at an address, whether it has followed what has been seen here.
	ask func(node string, from netip.Addr, to netip.AddrPort) error
	// pastLists is clearance.Facts'.
	pastLists func() bool
	// send puts a question beside the loop, and tells of the answer.
	send  func(q clearance.Question, from netip.Addr, to netip.AddrPort, answered func(error))
	loop  *Loop
	log   *slog.Logger
	count func(err error) // questions

	failed map[string]int // by node: how many questions in a row it has not answered; the loop's

	listeners   atomic.Int32 // at which this agent answers others
	unreachable atomic.Bool  // it cannot listen
}

func newClearing(loop *Loop, count func(error), log *slog.Logger) *clearing {
	c := &clearing{loop: loop, count: count, log: log, failed: map[string]int{}}
	c.send = func(q clearance.Question, from netip.Addr, to netip.AddrPort, answered func(error)) {
		go func() { answered(c.ask(q.Node, from, to)) }()
	}
	return c
}

// stepMachine is one step of the machine, in the loop.
func (c *clearing) stepMachine(w *world.World, now time.Time) time.Time {
	c.facts.PastLists = w.Clearing() && c.pastLists()
	r := c.machine.Step(w, c.facts, now)
	c.facts = clearance.Facts{}
	for _, q := range r.Ask {
		from, to, ok := addressesBetween(w, q.Node, c.failed[q.Node])
		c.putQuestion(q, from, to, ok)
	}
	return r.Wake
}

// putQuestion puts a question, and brings the answer into the loop.
func (c *clearing) putQuestion(q clearance.Question, from netip.Addr, to netip.AddrPort, known bool) {
	if !known {
		c.takeAnswer(q, errNoManagementPort)
		return
	}
	c.send(q, from, to, func(err error) { c.takeAnswer(q, err) })
}

// takeAnswer takes in an answer.
func (c *clearing) takeAnswer(q clearance.Question, err error) {
	c.count(err)
	if err != nil {
		c.log.Debug("another agent does not say that it has followed", "node", q.Node, "error", err)
	}
	c.loop.Do(func(*world.World) {
		if c.failed[q.Node]++; err == nil {
			delete(c.failed, q.Node)
		}
		c.facts.Answers = append(c.facts.Answers, clearance.Answer{Question: q, Err: err})
	})
}

// addressesBetween are this node's management address and where another node's agent answers, in a family that both
// have. After each question without an answer it is the other family: there another program may have the port.
func addressesBetween(w *world.World, node string, failed int) (from netip.Addr, to netip.AddrPort, ok bool) {
	own, other := w.Node(w.Self), w.Node(node)
	if own == nil || other == nil {
		return from, to, false
	}
	families := w.Config.Families()
	for i := range families {
		f := families[(i+failed)%len(families)]
		a, is := egress.Management(own, f)
		b, has := egress.Management(other, f)
		if is && has {
			return a, netip.AddrPortFrom(b, w.Holding(node).AnswersAt()), true
		}
	}
	return from, to, false
}
