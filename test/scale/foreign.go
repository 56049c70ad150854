package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
	"github.com/egret-net/egret/test/harness"
)

const (
	aloneNodes   = 100
	aloneChanges = 2000
)

// progress is what the agent beside many pods says of itself.
type progress struct {
	Pods    int // that it knows
	Changed int // how often one of them changed
}

// measureAgent measures one agent beside many pods of other nodes: a process that follows and compiles as the agent
// does, without targets.
func (s options) measureAgent(ctx context.Context) (err error) {
	say("one agent beside %d pods", s.pods)
	c, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if e := c.close(); err == nil {
			err = e
		}
	}()
	if err := c.fill(ctx, aloneNodes); err != nil {
		return err
	}
	if err := c.fillPods(ctx, s.pods); err != nil {
		return err
	}
	agent, said, err := c.startSole(ctx)
	if err != nil {
		return err
	}
	at, err := said(func(p progress) bool { return p.Pods >= s.pods })
	if err != nil {
		return err
	}
	pid := agent.Process.Pid
	return c.printAgent(ctx, pid, at, said)
}

// printAgent changes pods of other nodes, and prints what that cost the agent.
func (c *cluster) printAgent(ctx context.Context, pid int, at progress,
	said func(func(progress) bool) (progress, error)) error {
	time.Sleep(5 * time.Second) // what the first list left is collected
	before, err := usageOf(pid)
	if err != nil {
		return err
	}
	if err := c.changePods(ctx); err != nil {
		return err
	}
	now, err := said(func(p progress) bool { return p.Changed >= at.Changed+min(c.pods, aloneChanges) })
	if err != nil {
		return err
	}
	after, err := usageOf(pid)
	if err != nil {
		return err
	}
	resident, err := memoryOf(pid, "VmRSS")
	if err != nil {
		return err
	}
	peak, err := memoryOf(pid, "VmHWM")
	if err != nil {
		return err
	}
	events := now.Changed - at.Changed
	fmt.Printf("one agent beside %d pods: VmRSS %.0f MiB, VmHWM %.0f MiB; "+
		"a foreign pod's event: %.3f ms of a processor, %d bytes\n", now.Pods, resident, peak,
		1000*(after.cpu-before.cpu)/float64(events), (after.read-before.read)/int64(events))
	return nil
}

// fillPods makes pods of nodes but the first, that no EgressIP selects, with the labels that pods of a Deployment have.
func (c *cluster) fillPods(ctx context.Context, n int) error {
	subnets, err := c.subnets(ctx)
	if err != nil {
		return err
	}
	return harness.Each(ctx, numbers(n), func(ctx context.Context, i int) error {
		p := c.foreign(subnets, i)
		_, err := c.core.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
}

// foreign is the i-th pod of those; its address is in the subnet of its node, as far as that has room.
func (c *cluster) foreign(subnets []*harness.FakeNode, i int) *corev1.Pod {
	n := *subnets[1+i%(len(subnets)-1)]
	p := harness.FakePod(namespace, &n, 20+i/(len(subnets)-1)%200, map[string]string{"app": fmt.Sprint("app-", i%500),
		"pod-template-hash": fmt.Sprint(i % 500), "app.kubernetes.io/part-of": "scale"})
	p.Name = foreignName(i)
	p.Status.Phase = corev1.PodRunning
	return p
}

func foreignName(i int) string { return fmt.Sprint("foreign-", i) }

// changePods changes a label of pods.
func (c *cluster) changePods(ctx context.Context) error {
	return harness.Each(ctx, numbers(min(c.pods, aloneChanges)), func(ctx context.Context, i int) error {
		_, err := c.core.CoreV1().Pods(namespace).Patch(ctx, foreignName(i), types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"version":"2"}}}`), metav1.PatchOptions{})
		return err
	})
}

// startSole starts the process, and returns a function that reads what it says of itself until that is enough.
func (c *cluster) startSole(ctx context.Context) (*exec.Cmd, func(func(progress) bool) (progress, error), error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "agent", c.kubeconfig())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	c.programs = append(c.programs, cmd)
	lines := bufio.NewScanner(out)
	return cmd, func(enough func(progress) bool) (p progress, err error) {
		for lines.Scan() {
			if err := json.Unmarshal(lines.Bytes(), &p); err != nil || enough(p) {
				return p, err
			}
		}
		return p, fmt.Errorf("the agent ended: %w", lines.Err())
	}, nil
}

// soleAgent is the process: it prints what it knows, twice a second.
func soleAgent(ctx context.Context, kubeconfig string) error {
	debug.SetGCPercent(50) // as egret-node does
	config, err := kube.Config(kubeconfig, "", 200, "egret-scale")
	if err != nil {
		return err
	}
	a, err := newAgent(nodeName(0), config)
	if err != nil {
		return err
	}
	a.world.SetHost(hostOf(0))
	go a.source.Run(ctx)
	memo, said := compile.NewMemo(all.Features()), progress{}
	a.world.FollowChanges(said.count)
	tick := time.NewTicker(500 * time.Millisecond)
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-a.source.Changes():
			change(a.world)
			if a.source.Synced() {
				memo.Update(a.world)
			}
		case <-tick.C:
			said.Pods = 0
			for range a.world.EachPod() { // a sorted list of them would be a part of what is measured
				said.Pods++
			}
			if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
				return err
			}
		}
	}
}

func (p *progress) count(e world.Entry) {
	if e.Kind == world.KindPod {
		p.Changed++
	}
}

// hostOf is what the i-th node's agent knows of its host.
func hostOf(i int) *world.Host {
	f := facts(i)
	return &world.Host{UplinkMAC: f.UplinkMAC, MTU: 1500, Primary: f.Primary, Uplink: f.Primary,
		Addrs: []netip.Addr{f.Primary[0].Addr()}, Gateways: f.Gateways}
}
