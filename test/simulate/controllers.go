package simulate

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
)

// As in internal/controller's election.
const (
	leaderLeaseLasts = 2 * time.Second
	renewDeadline    = 1500 * time.Millisecond
	retryPeriod      = 300 * time.Millisecond
)

// controllerOn is the controller on one node.
type controllerOn struct {
	s       *Sim
	node    string // its machine
	steps   *controller.Steps
	source  *kube.Source
	process *process
	client  *client
	leads   bool
	renewed time.Time
	led     string
	judge   probe.LeaseJudge
	prober  *prober
	downs   int
}

func (s *Sim) addController(node string) {
	c := &controllerOn{s: s, node: node}
	s.controllers = append(s.controllers, c)
	c.start()
	s.every(retryPeriod, c.stand)
	s.every(leaseLasts/8, c.readLeases)
	s.every(200*time.Millisecond, func() { c.prober.look() })
}

func (c *controllerOn) start() {
	name := c.s.machine(c.node).name
	c.process = &process{s: c.s, on: c.s.machine(c.node), alive: true}
	c.source = kube.NewSource(nil, quiet, kube.Followed(all.ServedKinds().AllResources()...)...)
	c.prober = &prober{c: c, start: c.s.now, judge: probe.Judge{Total: c.s.config.ReachabilityTimeout,
		Grace: probe.DefaultGrace, Self: name}}
	c.steps = controller.NewSteps(controller.Surroundings{Config: c.s.config, Source: c.source,
		Writer: writer{c, c.process}, Self: name, Prober: c.prober, Now: c.process.now, Later: c.later})
	c.process.step, c.leads, c.led, c.judge = c.steps.Step, false, "", probe.LeaseJudge{}
	c.client = c.s.api.follow("controller on "+c.node, c.process, c.source,
		kube.Followed(all.ServedKinds().AllResources()...))
}

// kill kills the controller, and starts it again later.
func (c *controllerOn) kill(d time.Duration) {
	c.process.alive = false
	c.client.end()
	c.downs++
	c.s.after(d, func() {
		if c.downs--; c.downs == 0 {
			c.start()
			c.s.machine(c.node).reach()
		}
	})
}

func (s *Sim) controllerAt(node string) *controllerOn {
	for _, c := range s.controllers {
		if c.node == node {
			return c
		}
	}
	panic("no controller on " + node)
}

// stand is what the elector does, again and again.
func (c *controllerOn) stand() {
	if !c.process.runs() {
		return
	}
	a := c.s.api
	free := a.leader == "" || c.s.now.Sub(a.renewed) > leaderLeaseLasts
	if !c.process.cut && (a.leader == c.node || free) {
		a.leader, a.renewed, c.renewed = c.node, c.s.now, c.s.now
	}
	if leads := c.s.now.Sub(c.renewed) < renewDeadline && (c.process.cut || a.leader == c.node); leads != c.leads {
		if leads && !c.readsHolders() {
			return
		}
		if c.leads = leads; leads {
			c.steps.Lead()
		} else {
			c.steps.Resign()
		}
	}
	if !c.process.cut && c.led != a.leader {
		c.led = a.leader
		c.steps.Led(a.leader)
	}
	c.process.wake()
}

// readsHolders is what a controller reads before it leads.
func (c *controllerOn) readsHolders() bool {
	for _, kind := range controller.HolderKinds() {
		if c.process.cut || c.s.api.readNow(c.source, kind) != nil {
			return false
		}
	}
	return true
}

func (c *controllerOn) readLeases() {
	if !c.process.reaches() {
		return
	}
	for _, change := range c.judge.Look(c.s.elapsed(), c.s.api.leases) {
		c.steps.AgentFound(change)
	}
	c.process.wake()
}

// later has something done beside the controller's loop; 0 is a write.
func (c *controllerOn) later(d time.Duration, do func()) {
	if d == 0 {
		d = c.s.within(c.s.pace.Write, c.node+" writes")
	}
	process := c.process
	c.s.after(d, func() {
		if process.alive {
			do()
			process.wake()
		}
	})
}

// writer is the API server as a controller meets it.
type writer struct {
	c       *controllerOn
	process *process
}

// Patch writes an object. A write of a process that hangs was under way before.
func (w writer) Patch(_ context.Context, p kube.Patch) (string, error) {
	if w.process.cut {
		return "", errOutOfReach
	}
	return w.c.s.api.patch(p)
}

// PostEvent is not called.
func (w writer) PostEvent(context.Context, kube.Posting) error { return nil }
