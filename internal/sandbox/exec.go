package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Command is the argument list that runs cmd inside a node (all its namespaces and its root folder) or in the network
// namespace of an external host, the fabric ("fabric") or the control plane ("cp").
func (c *Cluster) Command(who string, cmd ...string) ([]string, error) {
	for _, n := range c.allNodes() {
		if who != n.name {
			continue
		}
		p, err := n.init()
		if err != nil {
			return nil, err
		}
		enter := []string{"nsenter", "--target", strconv.Itoa(p.pid), "--mount", "--uts", "--ipc", "--net", "--pid",
			"--root", "--wdns=/",
			"--", "/usr/bin/env", "-i", "TERM=xterm"}
		return append(append(enter, n.initEnv()...), cmd...), nil
	}
	hosts := append(c.layout.hostEndpoints(), c.layout.controlPlane())
	for _, h := range append(hosts, endpoint{name: c.layout.fabricNetns(), netns: c.layout.fabricNetns()}) {
		if who == h.name || c.layout.options.Name+"-"+who == h.name {
			return append([]string{"nsenter", "--net=" + netnsPath(h.netns), "--"}, cmd...), nil
		}
	}
	return nil, fmt.Errorf("no node or external host %q: there are %s", who, c.memberNames())
}

// ExecIn runs cmd there and returns its standard output. The error of a command that failed holds what it wrote to its
// standard error.
func (c *Cluster) ExecIn(ctx context.Context, who string, cmd ...string) ([]byte, error) {
	args, err := c.Command(who, cmd...)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Stdout, run.Stderr = &stdout, &stderr
	if err := run.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("%s: %s: %w\n%s", who, strings.Join(cmd, " "), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

func (c *Cluster) memberNames() string {
	var names []string
	for _, e := range append(c.layout.nodeEndpoints(), c.layout.hostEndpoints()...) {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

// Kubectl is the command that runs kubectl against the sandbox, whatever cluster the caller's KUBECONFIG names. It
// finds kubectl-egret next to the sandbox's other programs.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	o := c.layout.options
	cmd := exec.CommandContext(ctx, o.binaryPath("egret-controlplane"), append([]string{"kubectl"}, args...)...)
	path := o.BinDir + string(filepath.ListSeparator) + os.Getenv("PATH")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "PATH="+path)
	return cmd
}
