package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/sandbox/image"
	"github.com/egret-net/egret/internal/sandbox/rootfs"
)

// Up brings the sandbox up, or completes and repairs one that is there, and returns when all nodes are Ready and the
// cluster's DNS answers. Lines on what was reached go to out. If ctx ends first, a sandbox that was new is removed
// again; one that was complete before stays. Errors: not root, a missing program, other options than those of the
// sandbox that is there, or a part that does not start.
func Up(ctx context.Context, o Options, out io.Writer) (*Cluster, error) {
	if err := checkMachine(o); err != nil {
		return nil, err
	}
	p := newProgress(out)
	if err := ensureCache(ctx, o, p); err != nil {
		return nil, err
	}
	l := newLayout(o)
	unlock, err := lockState(ctx, l, true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := adoptState(l, p)
	if err != nil {
		return nil, err
	}
	c := &Cluster{layout: l, state: s}
	err = c.bringUp(ctx, p)
	if err != nil && ctx.Err() != nil && !s.Complete {
		p.printLine("interrupted: removing what was started")
		return nil, errors.Join(err, removeSandbox(l))
	}
	if err != nil {
		return nil, err
	}
	if !o.NoKubernetes {
		p.printLine("sandbox %s is up: egret-sandbox%s kubectl get nodes", o.Name, nameFlag(o))
	}
	return c, nil
}

func nameFlag(o Options) string {
	if o.Name == Defaults().Name {
		return ""
	}
	return " --name " + o.Name
}

// checkMachine says what is missing before anything is touched.
func checkMachine(o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("a sandbox needs root, for its namespaces: run this command as root")
	}
	files := []string{"egret-sandbox", "egret-controlplane"}
	if o.NoKubernetes {
		files = files[:1]
	}
	if o.MetalLB {
		files = append(files, metalLBManifest)
	}
	for _, file := range files {
		if _, err := os.Stat(o.binaryPath(file)); err != nil {
			return fmt.Errorf("%s is missing: run make build: %w", file, err)
		}
	}
	return checkRouter(newLayout(o))
}

// ensureCache builds the root folder and the images if they are not there.
func ensureCache(ctx context.Context, o Options, p *progress) error {
	say := func(line string) { p.printLine("%s", line) }
	if err := rootfs.Ensure(ctx, o.rootDir(), say); err != nil {
		return err
	}
	for _, file := range imageFiles(o) {
		if _, err := os.Stat(file); err != nil {
			return image.BuildAll(ctx, o.rootDir(), o.BinDir, o.imageDir(), say)
		}
	}
	return nil
}

// adoptState reads the state of the sandbox that is there; without one, it clears what a killed sandbox may have left.
func adoptState(l layout, p *progress) (state, error) {
	s, err := readState(l)
	if errors.Is(err, errNone) {
		if err := errors.Join(clearAway(l), emptyState(l)); err != nil {
			return state{}, err
		}
		s = state{Options: l.options, Datapath: detectDatapath()}
		return s, s.writeState(l)
	}
	if err != nil {
		return state{}, err
	}
	if have, want := s.Options.wantedText(), l.options.wantedText(); have != want {
		return state{}, fmt.Errorf("sandbox %s is there with other options (%s, wanted %s): take it down first, or "+
			"give another --name", l.options.Name, have, want)
	}
	p.printLine("sandbox %s is there: checking it", l.options.Name)
	s.Options = l.options
	return s, s.writeState(l)
}

// wantedText is the text of what a user can ask for.
func (o Options) wantedText() string {
	return fmt.Sprintf("--nodes %d --external-hosts %d --gateway-mode %s --ip-family %s --cni %s "+
		"--secondary-networks %d --metallb=%t, without Kubernetes: %t",
		o.Nodes, o.ExternalHosts, o.GatewayMode, o.IPFamily, o.CNI, o.SecondaryNetworks, o.MetalLB, o.NoKubernetes)
}

// detectDatapath is OVS' on this machine: the kernel's where its module loads.
func detectDatapath() string {
	if _, err := os.Stat("/sys/module/openvswitch"); err == nil {
		return "system"
	}
	if err := exec.Command("modprobe", "openvswitch").Run(); err == nil {
		return "system"
	}
	return "netdev"
}

// bringUp brings everything up that is not, in the order of need.
func (c *Cluster) bringUp(ctx context.Context, p *progress) error {
	if err := ensureFabric(c.layout); err != nil {
		return fmt.Errorf("fabric: %w", err)
	}
	p.printLine("fabric: gateway %s", joinTexts(c.layout.gatewayAddresses()))
	if err := c.startAll(ctx, p); err != nil {
		return err
	}
	if !c.layout.options.NoKubernetes {
		if err := c.configureNodes(ctx, p); err != nil {
			return err
		}
	}
	c.state.Complete = true
	return c.state.writeState(c.layout)
}

// startAll starts control plane, hosts and nodes, all at once.
func (c *Cluster) startAll(ctx context.Context, p *progress) error {
	c.sayMissing(p)
	var g errgroup.Group // all of them end by themselves, and then one error is enough
	if !c.layout.options.NoKubernetes {
		g.Go(func() error { return c.startControlPlane(ctx, p) })
	}
	for _, h := range c.layout.hostEndpoints() {
		g.Go(func() error {
			if err := ensureHost(ctx, c.layout, h); err != nil {
				return fmt.Errorf("external host %s: %w", h.name, err)
			}
			p.printLine("external host %s: %s%s", h.name, joinTexts(h.ips), asRouter(c.layout, h))
			return nil
		})
	}
	for _, n := range c.allNodes() {
		g.Go(func() error { return c.startNode(ctx, n, p) })
	}
	return g.Wait()
}

func (c *Cluster) sayMissing(p *progress) {
	if c.layout.options.CNI != Egret {
		return
	}
	for _, program := range []string{"egret-node", "egret-controller", "egret-cni"} {
		if _, err := os.Stat(c.layout.options.binaryPath(program)); err != nil {
			p.printLine("%s is missing and left out: run make build", program)
		}
	}
}

func (c *Cluster) startControlPlane(ctx context.Context, p *progress) error {
	port, err := ensureControlPlane(ctx, c.layout, c.state.APIPort)
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	c.state.APIPort = port
	if err := c.state.writeState(c.layout); err != nil {
		return err
	}
	p.printLine("control plane started: %s", c.layout.apiURL())
	return nil
}

func (c *Cluster) startNode(ctx context.Context, n node, p *progress) error {
	if n.isOn() {
		renewed, err := n.renewPrograms(ctx)
		if len(renewed) > 0 {
			p.printLine("node %s: new programs of %s", n.name, strings.Join(renewed, ", "))
		}
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := n.powerOff(); err != nil {
		return fmt.Errorf("clear node %s: %w", n.name, err)
	}
	if err := n.powerOn(); err != nil {
		return err
	}
	p.printLine("node %s started: %s", n.name, joinTexts(n.ips))
	return nil
}
