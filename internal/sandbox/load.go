package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// LoadImages imports an image archive (docker save, or OCI layout, as a tar) into containerd of every node. progress
// receives a line for each node. A node that is off is an error: it would lack the image later.
func (c *Cluster) LoadImages(ctx context.Context, file string, progress io.Writer) error {
	for _, n := range c.allNodes() {
		if err := c.loadOn(ctx, n.name, file); err != nil {
			return fmt.Errorf("load %s on node %s: %w", file, n.name, err)
		}
		fmt.Fprintf(progress, "%s has the images of %s\n", n.name, file)
	}
	return nil
}

// loadOn gives ctr(8) the archive as its input: the node does not see the folder that it lies in.
func (c *Cluster) loadOn(ctx context.Context, node, file string) error {
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer archive.Close()
	args, err := c.Command(node, "ctr", "--namespace", "k8s.io", "images", "import", "-")
	if err != nil {
		return err
	}
	ctr := exec.CommandContext(ctx, args[0], args[1:]...)
	ctr.Stdin = archive
	if out, err := ctr.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr images import: %w\n%s", err, out)
	}
	return nil
}
