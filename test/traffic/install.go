package traffic

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/egret-net/egret/internal/sandbox"
)

// Dir holds the sender on the nodes' disks; pods mount it there as well.
const Dir = "/var/lib/egret-e2e"

// Sender is the program's path in nodes and pods.
const Sender = Dir + "/sender"

// onMachine is the program's path for hosts outside, whose disk is the machine's: it goes with the sandbox.
func onMachine(c *sandbox.Cluster) string {
	return filepath.Join(c.Options().StateDir, c.Options().Name, "sender")
}

// Install builds the sender and puts it on every node's disk. It needs the go command and this module's source.
func Install(ctx context.Context, c *sandbox.Cluster) error {
	file := onMachine(c)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file,
		"github.com/egret-net/egret/test/traffic/sender")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the sender (inside the repository): %w\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, n := range c.Nodes() {
		if err := put(ctx, c, n.Name, program); err != nil {
			return fmt.Errorf("put the sender on %s: %w", n.Name, err)
		}
	}
	return nil
}

// put replaces the file in one step: a pod may run it.
func put(ctx context.Context, c *sandbox.Cluster, node string, program []byte) error {
	script := fmt.Sprintf("mkdir -p %[1]s && cat > %[1]s/new && chmod +x %[1]s/new && mv %[1]s/new %[2]s", Dir, Sender)
	args, err := c.Command(node, "sh", "-c", script)
	if err != nil {
		return err
	}
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Stdin = bytes.NewReader(program)
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// Sinks are where senders send to: every address of every host outside.
func Sinks(c *sandbox.Cluster) []string {
	var out []string
	for _, h := range c.ExternalHosts() {
		for _, ip := range h.IPs {
			out = append(out, netip.AddrPortFrom(ip, Port).String())
		}
	}
	return out
}
