package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/sandbox"
)

// sandboxCommand is what a command does with the sandbox that the options name.
func sandboxCommand(o *sandbox.Options, do func(c *sandbox.Cluster, cmd *cobra.Command, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := sandbox.Load(*o)
		if err != nil {
			return err
		}
		return do(c, cmd, args)
	}
}

func nodeCommand(o *sandbox.Options, use, short string, do func(*sandbox.Cluster, context.Context, string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use + " NODE", Short: short, Args: cobra.ExactArgs(1),
		RunE: sandboxCommand(o, func(c *sandbox.Cluster, cmd *cobra.Command, args []string) error {
			return do(c, cmd.Context(), args[0])
		}),
	}
}

// faultCommands have nodes fail and recover.
func faultCommands(o *sandbox.Options) []*cobra.Command {
	powerOff := func(c *sandbox.Cluster, _ context.Context, node string) error { return c.PowerOff(node) }
	return []*cobra.Command{
		nodeCommand(o, "power-off", "Cut a node's power: no links, no processes", powerOff),
		nodeCommand(o, "power-on", "Boot a node on the disk it had, with fresh links", (*sandbox.Cluster).PowerOn),
		nodeCommand(o, "shut-down", "Shut a node down in order: it gives up its egress IPs, then its power goes",
			(*sandbox.Cluster).ShutDown),
		partitionCommand(o),
		nodeCommand(o, "heal", "End a node's partition", (*sandbox.Cluster).Heal),
	}
}

func partitionCommand(o *sandbox.Options) *cobra.Command {
	var from string
	cmd := nodeCommand(o, "partition", "Cut a node off from the API server, from the rest of the fabric, or from both",
		func(c *sandbox.Cluster, ctx context.Context, node string) error {
			return c.Partition(ctx, node, sandbox.Side(from))
		})
	cmd.Flags().StringVar(&from, "from", string(sandbox.FromBoth), "api, fabric (all but the API server) or both")
	return cmd
}
