package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

// PowerOff takes a node's power: its links go down at once and every process of it dies. No error if it is off.
func (c *Cluster) PowerOff(name string) error {
	n, err := c.nodeByName(name)
	if err != nil {
		return err
	}
	unlock, err := lockState(context.Background(), c.layout, false)
	if err != nil {
		return err
	}
	defer unlock()
	return n.powerOff()
}

// ShutDown has a node give up its egress IPs before it takes its power, as a shutdown unit with egret-node release
// would. The power goes in any case; the error says what was still held.
func (c *Cluster) ShutDown(ctx context.Context, name string) error {
	_, released := c.ExecIn(ctx, name, nodeBin+"/egret-node", "release", "--node-name", name, "--kubeconfig", nodeEtc+
		"/node.kubeconfig")
	return errors.Join(released, c.PowerOff(name))
}

// PowerOn boots a node with the disk it had, fresh links and another boot id. It returns when the node's processes are
// being started and its agents have credentials for the present Node object, which a test may have deleted meanwhile.
func (c *Cluster) PowerOn(ctx context.Context, name string) error {
	n, err := c.nodeByName(name)
	if err != nil {
		return err
	}
	unlock, err := lockState(ctx, c.layout, false)
	if err != nil {
		return err
	}
	defer unlock()
	if n.isOn() {
		return nil
	}
	if err := n.powerOff(); err != nil { // the rest of a crash between links and processes
		return err
	}
	c.dropDeadTokens(ctx, n)
	if err := n.powerOn(); err != nil {
		return err
	}
	return c.refreshAgents(ctx, n)
}

// PowerOnBare boots a node that is off as it was before anybody installed a pod network: neither Egret nor Open vSwitch
// starts. Its disk stays as it is. PowerOff and PowerOn give it both back.
func (c *Cluster) PowerOnBare(ctx context.Context, name string) error {
	n, err := c.nodeByName(name)
	if err != nil {
		return err
	}
	unlock, err := lockState(ctx, c.layout, false)
	if err != nil {
		return err
	}
	defer unlock()
	n.layout.options.CNI = None
	return n.powerOn()
}

// dropDeadTokens takes from the node's agents tokens that are bound to a Node object that was deleted: with one the
// agent would begin while the API server still has it in its cache, and read the file again after a minute only
// (client-go 0.36). Without an API server to ask, they stay.
func (c *Cluster) dropDeadTokens(ctx context.Context, n node) {
	client, err := c.Client()
	if err != nil || c.layout.options.CNI != Egret || c.layout.options.NoKubernetes {
		return
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	object, err := client.CoreV1().Nodes().Get(short, n.name, metav1.GetOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		dropAgents(n, object)
	}
}

func (c *Cluster) refreshAgents(ctx context.Context, n node) error {
	if c.layout.options.CNI != Egret || c.layout.options.NoKubernetes {
		return nil
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	object, err := c.awaitRegistered(ctx, client, n)
	if err != nil {
		return err
	}
	return issueAgents(ctx, client, n, object)
}

// StopControlPlane ends etcd, API server, controllers and scheduler at once. No error if they do not run.
func (c *Cluster) StopControlPlane(ctx context.Context) error {
	unlock, err := lockState(ctx, c.layout, false)
	if err != nil {
		return err
	}
	defer unlock()
	if p, running := runningFrom(controlPlanePID(c.layout)); running {
		return killAndWait([]process{p})
	}
	return nil
}

// StartControlPlane starts what StopControlPlane ended, with the data that it had, and returns when the API server
// answers.
func (c *Cluster) StartControlPlane(ctx context.Context) error {
	unlock, err := lockState(ctx, c.layout, false)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.startControlPlane(ctx, newProgress(io.Discard)); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	return c.waitForAPI(ctx, client)
}

// Processes lists the supervised processes of a node.
func (c *Cluster) Processes(ctx context.Context, node string) ([]nodeinit.Status, error) {
	return c.askNode(ctx, node, nodeinit.Request{Op: "list"})
}

// KillProcess sends SIGKILL to a supervised process of a node, which then is started again after 0.3 s.
func (c *Cluster) KillProcess(ctx context.Context, node, process string) error {
	return c.SignalProcess(ctx, node, process, syscall.SIGKILL)
}

// SignalProcess sends a signal to a supervised process of a node.
func (c *Cluster) SignalProcess(ctx context.Context, node, process string, signal syscall.Signal) error {
	_, err := c.askNode(ctx, node, nodeinit.Request{Op: "kill", Unit: process, Signal: signal})
	return err
}

// StopProcess ends a supervised process of a node and keeps it from being started again until StartProcess.
func (c *Cluster) StopProcess(ctx context.Context, node, process string) error {
	_, err := c.askNode(ctx, node, nodeinit.Request{Op: "stop", Unit: process})
	return err
}

// StartProcess starts a stopped process of a node.
func (c *Cluster) StartProcess(ctx context.Context, node, process string) error {
	_, err := c.askNode(ctx, node, nodeinit.Request{Op: "start", Unit: process})
	return err
}

// PidOf is the pid of a node's supervised process, as ExecIn sees it; 0 if it does not run just now.
func (c *Cluster) PidOf(ctx context.Context, node, process string) (int, error) {
	units, err := c.Processes(ctx, node)
	if err != nil {
		return 0, err
	}
	for _, u := range units {
		if u.Name == process {
			return u.PID, nil
		}
	}
	return 0, fmt.Errorf("node %s has no process %q", node, process)
}

func (c *Cluster) askNode(ctx context.Context, name string, req nodeinit.Request) ([]nodeinit.Status, error) {
	n, err := c.nodeByName(name)
	if err != nil {
		return nil, err
	}
	return n.askInit(ctx, req)
}

func (c *Cluster) nodeByName(name string) (node, error) {
	for _, n := range c.allNodes() {
		if n.name == name {
			return n, nil
		}
	}
	return node{}, errors.New("no node " + name + ": there are " + c.memberNames())
}
