package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
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

// memory measures the resident memory of the agent and the controller with 500 nodes, 10,000 pods and 1,000 EgressIPs
// in the API, when they know them all and after 1,000 changes. One node is real; a tenth of the egress IPs is in its
// network and hosted by it.
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
	var programs []*harness.Program
	for _, name := range []string{"egret-controller", "egret-node"} {
		p, err := c.widen(ctx, node, name)
		if err != nil {
			return err
		}
		defer p.Stop()
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

func (c *cluster) reportMemory(ctx context.Context, l *lab, node string, p *harness.Program, when string) error {
	resident, peak, err := c.Resident(ctx, node, p.Pid)
	if err != nil {
		return fmt.Errorf("memory of %s: %w", p.Name, err)
	}
	name := "memory/" + p.Name + "/" + when
	l.report(result{name: name + "/VmRSS", unit: "MiB", runs: sample{resident}})
	l.report(result{name: name + "/VmHWM", unit: "MiB", runs: sample{peak}, value: megabytes})
	return nil
}

// widen stops a node's program and runs it again with room for more nodes: the sandbox's own subnets have room for 256.
func (c *cluster) widen(ctx context.Context, node, name string) (*harness.Program, error) {
	return c.Rerun(ctx, node, name, func(args []string) ([]string, error) {
		i := slices.Index(args, "--cluster-subnets")
		if i < 0 {
			return nil, fmt.Errorf("%s has no --cluster-subnets: %q", name, args)
		}
		args[i+1] = widerSubnets
		return args, nil
	})
}
