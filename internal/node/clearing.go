package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

var errNoManagementPort = errors.New("one of the two nodes has no management port")

// clearing carries out what clearance.Machine decides about other nodes. Machine, facts and former belong to the loop.
type clearing struct {
	machine clearance.Machine
	facts   clearance.Facts
	former  clearance.Former // the nodes that a previous process steered its pods to

	// ask asks the agent at an address whether it has followed what has been seen here.
	ask func(from netip.Addr, to netip.AddrPort) error
	// pastLists is clearance.Facts'.
	pastLists func() bool
	// send puts a question beside the loop, and tells of the answer.
	send  func(q clearance.Question, from netip.Addr, to netip.AddrPort, answered func(error))
	loop  *Loop
	log   *slog.Logger
	count func(err error) // questions

	failed map[string]int // by node: how many questions in a row it has not answered; the loop's

	answersAt atomic.Uint32 // the port; 0: this agent answers nobody
	listeners atomic.Int32  // at which it answers
}

func newClearing(loop *Loop, count func(error), log *slog.Logger) *clearing {
	c := &clearing{loop: loop, count: count, log: log, failed: map[string]int{}}
	c.send = func(_ clearance.Question, from netip.Addr, to netip.AddrPort, answered func(error)) {
		go func() { answered(c.ask(from, to)) }()
	}
	return c
}

// answerPort is where this agent answers.
func (c *clearing) answerPort() uint16 { return uint16(c.answersAt.Load()) }

// beginMachine has the machine work, now that the cluster is known. Where this node's EgressNode says that a former
// process of this boot led an object's pods, they are led on, unless the object is another one since then, or is gone.
func (c *clearing) beginMachine(w *world.World, bootID string) {
	c.former.Nodes = [2]map[ref.Object][]string{{}, {}}
	if h := w.Holding(w.Self); h != nil && h.BootID == bootID {
		for key, led := range h.Steers {
			for _, to := range led {
				if object := ref.OfKey(key); to.Node != w.Self && to.Node != "" && w.LedBefore(key, to) {
					nodes := c.former.Nodes[world.FamilyOf(to.IP)]
					nodes[object] = append(nodes[object], to.Node)
				}
			}
		}
	}
	c.machine.Begin(w, c.former)
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

// readLed reads what a former process of this agent led its pods to.
func (c *clearing) readLed(ctx context.Context, nb *ovn.Plane) {
	elems, err := nb.Elements(ctx)
	if err != nil {
		c.log.Warn("could not read which pods a former agent led to holders: they wait until these answer", "error", err)
	}
	former := formerSteering(elems)
	c.loop.Do(func(*world.World) {
		c.former = former
	})
}

// formerSteering is by which objects pods are led, and where to, as sets have it.
func formerSteering(elems []plan.SetElem) clearance.Former {
	pods, to := map[netip.Addr][]ref.Object{}, map[ref.Object]destinations.Set{}
	for _, e := range elems {
		if object, is := egressip.LedTo(e.Set); is {
			to[object] = append(to[object], parseNetwork(e.Addr))
			continue
		}
		object, is := egressip.Led(e.Set)
		if !is {
			object, is = egressservice.Led(e.Set)
		}
		if ip, err := netip.ParseAddr(e.Addr); is && err == nil {
			pods[ip] = append(pods[ip], object)
		}
	}
	for object, prefixes := range to {
		to[object] = destinations.Of(prefixes...)
	}
	return clearance.Former{Pods: pods, To: to}
}

// parseNetwork is what a set has: a network or an address; the zero one is no network.
func parseNetwork(text string) netip.Prefix {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	p, _ := netip.ParsePrefix(text)
	return p
}
