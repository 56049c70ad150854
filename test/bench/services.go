package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

const (
	endpointsAService = 10
	manyNodes         = 25 // that exist in the API only, and have the endpoints
	manySpace         = "bench-services"
	servicesMegabytes = 200
)

// manyServices measures the agent with 5,000 Services of 10 endpoints each: how long after its start an empty Northbound has their load
// balancers, beside one transaction that writes the same rows; how long until a changed endpoint is in the hypervisor; and its memory.
func manyServices(ctx context.Context, l *lab) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := l.sandbox(ctx, "-services", 1, sandbox.Egret, unprobed)
	if err != nil {
		return err
	}
	nodes := make([]*fakeNode, manyNodes)
	for i := range nodes {
		nodes[i] = &fakeNode{name: fmt.Sprint("fake-", i)}
	}
	if err := c.ensureFakeNodes(ctx, nodes); err != nil {
		return err
	}
	l.say("services: %d of %d endpoints", l.services, endpointsAService)
	if err := c.fillServices(ctx, l.services, nodes); err != nil {
		return err
	}
	m := &manyTimes{cluster: c, number: l.services, node: c.Nodes()[0].Name, nodes: nodes}
	err = m.measure(ctx, l)
	if m.agent != nil {
		m.agent.stop()
	}
	return errors.Join(err, l.down(c.Options().Name))
}

// manyTimes is the measurement and what it has found, in milliseconds.
type manyTimes struct {
	*cluster
	number int    // of Services
	node   string // the real one
	nodes  []*fakeNode
	args   []string // of the agent
	agent  *program

	written, inForce         sample // after the agent's start: in the Northbound, in the hypervisor
	baseWritten, baseInForce sample // of the one transaction
}

func (m *manyTimes) measure(ctx context.Context, l *lab) error {
	if err := m.takeOver(ctx); err != nil {
		return err
	}
	starts := min(l.runs, 5)
	for range starts {
		if err := m.rewrite(ctx); err != nil {
			return err
		}
		if err := m.start(ctx); err != nil {
			return err
		}
	}
	l.report(result{name: "services/in-sync/written", unit: "ms", runs: m.written, base: m.baseWritten.median(), ratio: 4})
	l.report(result{name: "services/in-sync/hv-has-it", unit: "ms", runs: m.inForce, base: m.baseInForce.median(), ratio: 4})
	if err := m.reportEndpoint(ctx, l); err != nil {
		return err
	}
	resident, peak, err := m.resident(ctx, m.node, m.agent.pid)
	if err != nil {
		return err
	}
	l.report(result{name: "services/egret-node/VmRSS", unit: "MiB", runs: sample{resident}, value: servicesMegabytes})
	l.report(result{name: "services/egret-node/VmHWM", unit: "MiB", runs: sample{peak}})
	return nil
}

// takeOver runs the agent in place of the node's own, and waits until it has written all load balancers once.
func (m *manyTimes) takeOver(ctx context.Context) (err error) {
	if m.args, err = m.argsOf(ctx, m.node, "egret-node"); err != nil {
		return err
	}
	if err := m.StopProcess(ctx, m.node, "egret-node"); err != nil {
		return err
	}
	if m.agent, err = m.runProgram(m.node, "egret-node", m.args); err != nil {
		return err
	}
	_, _, err = m.await(ctx)
	return err
}

// rewrite stops the agent and measures the transaction that it competes with; then the Northbound is empty of load balancers.
func (m *manyTimes) rewrite(ctx context.Context) error {
	m.agent.stop()
	out, err := m.balancers(ctx, "rewrite")
	if err != nil {
		return err
	}
	var written, inForce float64
	if _, err := fmt.Sscan(out, &written, &inForce); err != nil {
		return fmt.Errorf("times %q: %w", out, err)
	}
	m.baseWritten.add(written)
	m.baseInForce.add(inForce)
	_, err = m.balancers(ctx, "clear")
	return err
}

// start starts the agent, and measures until its load balancers are there.
func (m *manyTimes) start(ctx context.Context) (err error) {
	start := time.Now()
	if m.agent, err = m.runProgram(m.node, "egret-node", m.args); err != nil {
		return err
	}
	written, inForce, err := m.await(ctx)
	m.written.addTime(written.Sub(start))
	m.inForce.addTime(inForce.Sub(start))
	return err
}

// await waits until the node has the load balancers of all Services.
func (m *manyTimes) await(ctx context.Context) (written, inForce time.Time, err error) {
	out, err := m.balancers(ctx, "await", fmt.Sprint(m.number))
	if err != nil {
		return written, inForce, err
	}
	var a, b int64
	_, err = fmt.Sscan(out, &a, &b)
	return time.Unix(0, a), time.Unix(0, b), err
}

// balancers runs this program's part inside the node.
func (m *manyTimes) balancers(ctx context.Context, args ...string) (string, error) {
	out, err := m.ExecIn(ctx, m.node, append([]string{"/opt/egret/bin/egret-bench", "balancers"}, args...)...)
	return string(out), err
}

// reportEndpoint measures how long one changed endpoint takes to the hypervisor.
func (m *manyTimes) reportEndpoint(ctx context.Context, l *lab) error {
	if err := m.rest(ctx, m.node, m.agent.pid); err != nil {
		return err
	}
	floor, err := m.floor(ctx, m.node, 30)
	if err != nil {
		return err
	}
	z, err := m.watchZone(m.node)
	if err != nil {
		return err
	}
	defer z.stop()
	var written, inForce sample
	for i := range l.runs {
		time.Sleep(300 * time.Millisecond)
		start := time.Now()
		if err := m.moveEndpoint(ctx, i); err != nil {
			return err
		}
		at, ready, err := z.change(ctx, start)
		if err != nil {
			return err
		}
		written.addTime(at.Sub(start))
		inForce.addTime(ready.Sub(start))
	}
	l.report(result{name: "services/one-endpoint/written", unit: "ms", runs: written, base: floor})
	l.report(result{name: "services/one-endpoint/hv-has-it", unit: "ms", runs: inForce, base: floor, ratio: 5})
	return nil
}

// moveEndpoint gives the i-th Service's first endpoint another address, one that no other has.
func (m *manyTimes) moveEndpoint(ctx context.Context, i int) error {
	address := m.nodes[i%manyNodes].subnet.Addr().As4()
	address[3] = byte(220 + i/manyNodes%30)
	patch := fmt.Sprintf(`[{"op":"replace","path":"/endpoints/0/addresses/0","value":%q}]`, netip.AddrFrom4(address))
	_, err := m.core.DiscoveryV1().EndpointSlices(manySpace).Patch(ctx, manyName(i), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
