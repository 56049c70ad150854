package main

import (
	"context"
	"fmt"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

const (
	memoryNodes     = 500
	memoryEgressIPs = 1000
	podsAnEgressIP  = 10
	memorySpaces    = 200
	memoryChanges   = 1000
	megabytes       = 150
)

// widerSubnets has room for 500 nodes, and contains what the sandbox gave its own node.
const widerSubnets = "10.244.0.0/14/24"

// memory measures the resident memory of the agent and the controller with 500 nodes, 10,000 pods and 1,000 EgressIPs in the API, when
// they know them all and after 1,000 changes. One node is real; a tenth of the egress IPs is in its network and hosted by it.
func memory(ctx context.Context, l *lab) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := l.sandbox(ctx, "-memory", 1, sandbox.Egret, unprobed)
	if err != nil {
		return err
	}
	l.say("memory: filling the API")
	if err := c.fill(ctx); err != nil {
		return err
	}
	node := c.Nodes()[0].Name
	var programs []*program
	for _, name := range []string{"egret-controller", "egret-node"} {
		p, err := c.widen(ctx, node, name)
		if err != nil {
			return err
		}
		defer p.stop()
		programs = append(programs, p)
	}
	if err := c.fillRest(ctx, l); err != nil {
		return err
	}
	for _, p := range programs {
		if err := c.reportMemory(ctx, l, node, p, "synced"); err != nil {
			return err
		}
	}
	l.say("memory: %d changes", memoryChanges)
	if err := c.change(ctx); err != nil {
		return err
	}
	for _, p := range programs {
		if err := c.reportMemory(ctx, l, node, p, "changed"); err != nil {
			return err
		}
	}
	return l.down(c.Options().Name)
}

func (c *cluster) reportMemory(ctx context.Context, l *lab, node string, p *program, when string) error {
	resident, peak, err := c.resident(ctx, node, p.pid)
	if err != nil {
		return fmt.Errorf("memory of %s: %w", p.name, err)
	}
	name := "memory/" + p.name + "/" + when
	l.report(result{name: name + "/VmRSS", unit: "MiB", runs: sample{resident}})
	l.report(result{name: name + "/VmHWM", unit: "MiB", runs: sample{peak}, value: megabytes})
	return nil
}

// rest waits until a program has taken in what was changed: it uses no more than a tenth of a core.
func (c *cluster) rest(ctx context.Context, node string, pid int) error {
	last := int64(-1)
	return until(ctx, 3*time.Minute, 3*time.Second, func() error {
		ticks, err := c.cpuTicks(ctx, node, pid)
		if err != nil {
			return err
		}
		used := ticks - last
		first := last < 0
		last = ticks
		if first || used > 30 { // of 100 a second, in 3 s
			return fmt.Errorf("process %d is busy", pid)
		}
		return nil
	})
}
