package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
)

const (
	endpointsAService = 10
	manyNodes         = 25 // that exist in the API only, and have the endpoints
	manySpace         = "bench-services"
	servicesMegabytes = 200
	// inSyncMilliseconds is four times what one transaction that writes the same rows took when the goal was set.
	inSyncMilliseconds = 20_000
)

// manyServices measures the agent with 5,000 Services of 10 endpoints each: how long after its start an empty
// Northbound has their load balancers; how long until a changed endpoint is in the hypervisor; and its memory.
func manyServices(ctx context.Context, l *lab) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := l.sandbox(ctx, "-services", 1, sandbox.Egret, unprobed)
	if err != nil {
		return err
	}
	nodes := fakeNodes(manyNodes)
	if err := c.EnsureFakeNodes(ctx, nodes); err != nil {
		return err
	}
	l.say("services: %d of %d endpoints", l.services, endpointsAService)
	if err := c.fillServices(ctx, l.services, nodes); err != nil {
		return err
	}
	m := &manyTimes{cluster: c, number: l.services, node: c.Nodes()[0].Name, nodes: nodes}
	err = m.measure(ctx, l)
	if m.agent != nil {
		m.agent.Stop()
	}
	return errors.Join(err, l.down(c.Options().Name))
}

// manyTimes is the measurement.
type manyTimes struct {
	*cluster
	number int    // of Services
	node   string // the real one
	nodes  []*harness.FakeNode
	args   []string // of the agent
	agent  *harness.Program
}

func (m *manyTimes) measure(ctx context.Context, l *lab) error {
	if err := m.takeOver(ctx); err != nil {
		return err
	}
	t := tally{}
	for range min(l.runs, 5) {
		if err := m.start(ctx, t); err != nil {
			return err
		}
	}
	l.reportTally("services/in-sync", t, []result{{name: "written", unit: "ms"},
		{name: "hv-has-it", unit: "ms", max: inSyncMilliseconds}})
	if err := m.reportEndpoint(ctx, l); err != nil {
		return err
	}
	resident, peak, err := m.Resident(ctx, m.node, m.agent.Pid)
	if err != nil {
		return err
	}
	l.report(result{name: "services/egret-node/VmRSS", unit: "MiB", runs: sample{resident}, value: servicesMegabytes})
	l.report(result{name: "services/egret-node/VmHWM", unit: "MiB", runs: sample{peak}})
	return nil
}

// takeOver runs the agent in place of the node's own.
func (m *manyTimes) takeOver(ctx context.Context) (err error) {
	if m.args, err = m.ArgsOf(ctx, m.node, "egret-node"); err != nil {
		return err
	}
	if err := m.StopProcess(ctx, m.node, "egret-node"); err != nil {
		return err
	}
	m.agent, err = m.RunProgram(m.node, "egret-node", m.args)
	return err
}

// start stops the agent, removes all load balancers, starts it again, and measures until they are there.
func (m *manyTimes) start(ctx context.Context, t tally) (err error) {
	m.agent.Stop()
	if _, err := m.ExecIn(ctx, m.node, "ovn-nbctl", "--wait=hv", "--", "--all", "destroy",
		"Load_Balancer"); err != nil {
		return err
	}
	z, err := m.WatchZone(m.node)
	if err != nil {
		return err
	}
	defer z.Stop()
	rows, err := m.Monitor(m.node, "Load_Balancer", "name")
	if err != nil {
		return err
	}
	start := time.Now()
	ended := time.AfterFunc(5*time.Minute, rows.Stop)
	defer ended.Stop()
	if m.agent, err = m.RunProgram(m.node, "egret-node", m.args); err != nil {
		return err
	}
	written, err := rowsThere(rows.Stdout, m.number)
	if err != nil {
		return err
	}
	// the two monitors may tell of one transaction in any order
	_, inForce, err := z.Last(ctx, written.Add(100*time.Millisecond))
	t.addSince(start, map[string]time.Time{"written": written, "hv-has-it": inForce})
	return err
}

// rowsThere is when a monitored table had so many rows.
func rowsThere(monitor io.Reader, number int) (time.Time, error) {
	count := 0
	for lines := bufio.NewScanner(monitor); lines.Scan(); {
		switch fields := strings.Split(lines.Text(), ","); {
		case len(fields) < 2:
		case fields[1] == "insert" || fields[1] == "initial":
			count++
		case fields[1] == "delete":
			count--
		}
		if count == number {
			return time.Now(), nil
		}
	}
	return time.Time{}, fmt.Errorf("there were %d rows, not %d, within 5 minutes", count, number)
}

// reportEndpoint measures how long one changed endpoint takes to the hypervisor.
func (m *manyTimes) reportEndpoint(ctx context.Context, l *lab) error {
	if err := m.Rest(ctx, m.node, m.agent.Pid); err != nil {
		return err
	}
	floor, err := m.floor(ctx, m.node, 30)
	if err != nil {
		return err
	}
	z, err := m.WatchZone(m.node)
	if err != nil {
		return err
	}
	defer z.Stop()
	_, err = l.repeat(experiment{"services/one-endpoint", []result{
		{name: "written", unit: "ms", base: floor},
		{name: "hv-has-it", unit: "ms", base: floor, ratio: 5},
	}, func(i int, t tally) error {
		time.Sleep(300 * time.Millisecond)
		start := time.Now()
		if err := m.moveEndpoint(ctx, i); err != nil {
			return err
		}
		written, ready, err := z.Change(ctx, start)
		t.addSince(start, map[string]time.Time{"written": written, "hv-has-it": ready})
		return err
	}})
	return err
}

// moveEndpoint gives the i-th Service's first endpoint another address, one that no other has.
func (m *manyTimes) moveEndpoint(ctx context.Context, i int) error {
	address := m.nodes[i%manyNodes].Subnet.Addr().As4()
	address[3] = byte(220 + i/manyNodes%30)
	patch := fmt.Sprintf(`[{"op":"replace","path":"/endpoints/0/addresses/0","value":%q}]`, netip.AddrFrom4(address))
	_, err := m.Core.DiscoveryV1().EndpointSlices(manySpace).Patch(ctx, manyName(i), types.JSONPatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}
