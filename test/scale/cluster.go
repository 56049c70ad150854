package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/deploy"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/test/harness"
)

// cluster is a control plane without nodes, Egret's controller, and simulated agents.
type cluster struct {
	options
	folder     string
	config     *rest.Config
	core       *kubernetes.Clientset
	egret      *kube.Clients
	programs   []*exec.Cmd
	standby    standby
	counter    *counter
	agents     []*agent
	nodes      int
	agentsEnd  context.Context // when agents are to end
	stopAgents context.CancelFunc
}

// start brings up etcd, an API server, Kubernetes' controllers and scheduler, and Egret's controller.
func (s options) start(ctx context.Context) (*cluster, error) {
	folder, err := os.MkdirTemp("", "egret-scale-")
	if err != nil {
		return nil, err
	}
	c := &cluster{options: s, folder: folder, counter: newCounter(), stopAgents: func() {}}
	if err := c.bringUp(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *cluster) bringUp(ctx context.Context) error {
	// Nobody renews the nodes' Leases: they stay Ready all the same.
	if err := c.run("egret-controlplane", "all", "--dir", c.folder, "--bind", address,
		"--kcm-arg=--node-monitor-grace-period=24h"); err != nil {
		return err
	}
	answers := func() error { return c.connect(ctx) }
	if err := harness.Until(ctx, 2*time.Minute, 200*time.Millisecond, answers); err != nil {
		return err
	}
	if err := harness.Until(ctx, time.Minute, time.Second, func() error { return c.apply(ctx) }); err != nil {
		return err
	}
	return c.run("egret-controller", "--kubeconfig", c.kubeconfig(), "--node-name", nodeName(0),
		"--cluster-subnets", clusterSubnets, "--egressip-reachability-total-timeout", "0")
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.folder, "admin.kubeconfig") }

// run starts a program, which ends with this one.
func (c *cluster) run(name string, args ...string) error {
	log, err := os.Create(filepath.Join(c.folder, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s (make product builds it): %w", name, err)
	}
	c.programs = append(c.programs, cmd)
	return nil
}

// connect makes clients that have no limit of requests, once the API server answers.
func (c *cluster) connect(ctx context.Context) (err error) {
	if c.config, err = kube.Config(c.kubeconfig(), "", -1, "egret-scale"); err != nil {
		return err
	}
	if c.core, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	if c.egret, err = kube.NewClients(c.config); err != nil {
		return err
	}
	return c.core.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// apply applies the manifests of deploy/.
func (c *cluster) apply(ctx context.Context) error {
	files, err := fs.Glob(deploy.Manifests, "*.yaml")
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, f := range files {
		content, err := deploy.Manifests.ReadFile(f)
		if err != nil {
			return err
		}
		all.WriteString("---\n" + string(content) + "\n")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "egret-controlplane"), "kubectl", "apply", "--server-side",
		"-f", "-")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig())
	cmd.Stdin = strings.NewReader(all.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply manifests: %w\n%s", err, out)
	}
	return nil
}

// close ends all programs, the last one first.
func (c *cluster) close() error {
	c.stopAgents()
	for i := len(c.programs) - 1; i >= 0; i-- {
		_ = c.programs[i].Process.Kill()
		_ = c.programs[i].Wait() // its status is that of a process that was killed
	}
	return os.RemoveAll(c.folder)
}

// startAgents starts an agent of each node, and waits until each follows everything and has reported.
func (c *cluster) startAgents(ctx context.Context) error {
	c.agentsEnd, c.stopAgents = context.WithCancel(ctx)
	for i := range c.nodes {
		if _, err := c.startAgent(nodeName(i)); err != nil {
			return err
		}
		if i%20 == 19 { // a few at a time
			if err := c.waitForAgents(ctx); err != nil {
				return err
			}
		}
	}
	return c.waitForAgents(ctx)
}

func (c *cluster) startAgent(name string) (*agent, error) {
	a, err := newAgent(name, c.counter.count(c.config))
	if err != nil {
		return nil, err
	}
	c.agents = append(c.agents, a)
	go a.run(c.agentsEnd)
	return a, nil
}

func (c *cluster) waitForAgents(ctx context.Context) error {
	return harness.Until(ctx, 10*time.Minute, 100*time.Millisecond, func() error {
		for _, a := range c.agents {
			if !a.reported.Load() {
				return fmt.Errorf("the agent of %s has not reported", a.self)
			}
		}
		return nil
	})
}

// figures are what was used and sent up to a moment.
type figures struct {
	wire, controller               int64 // bytes
	bodies                         map[string]int64
	controlPlane, decides, follows float64 // seconds of a processor
}

func (c *cluster) figures() (f figures, err error) {
	f.wire, f.bodies = c.counter.wire.Load(), c.counter.bodies()
	plane, err := usageOf(c.programs[0].Process.Pid)
	if err != nil {
		return f, err
	}
	controller, err := usageOf(c.programs[1].Process.Pid)
	if err != nil {
		return f, err
	}
	own, err := usageOf(os.Getpid())
	f.controlPlane, f.decides, f.follows, f.controller = plane.cpu, controller.cpu, own.cpu, controller.read
	return f, err
}

func (f figures) since(before figures) figures {
	bodies := map[string]int64{}
	for resource, n := range f.bodies {
		bodies[resource] = n - before.bodies[resource]
	}
	return figures{f.wire - before.wire, f.controller - before.controller, bodies,
		f.controlPlane - before.controlPlane, f.decides - before.decides, f.follows - before.follows}
}
