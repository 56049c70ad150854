package main

import (
	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/sandbox"
)

func shutDownCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use: "shut-down NODE", Short: "Shut a node down in order: it gives up its egress IPs, then its power goes",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := sandbox.Load(*o)
			if err != nil {
				return err
			}
			return c.ShutDown(cmd.Context(), args[0])
		},
	}
}

func partitionCommand(o *sandbox.Options) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "partition NODE", Short: "Cut a node off from the API server, from the rest of the fabric, or from both",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := sandbox.Load(*o)
			if err != nil {
				return err
			}
			return c.Partition(cmd.Context(), args[0], sandbox.Side(from))
		},
	}
	cmd.Flags().StringVar(&from, "from", string(sandbox.FromBoth), "api, fabric (all but the API server) or both")
	return cmd
}

func healCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use: "heal NODE", Short: "End a node's partition", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := sandbox.Load(*o)
			if err != nil {
				return err
			}
			return c.Heal(cmd.Context(), args[0])
		},
	}
}

func powerOffCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use: "power-off NODE", Short: "Cut a node's power: no links, no processes", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := sandbox.Load(*o)
			if err != nil {
				return err
			}
			return c.PowerOff(args[0])
		},
	}
}

func powerOnCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use: "power-on NODE", Short: "Boot a node on the disk it had, with fresh links", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := sandbox.Load(*o)
			if err != nil {
				return err
			}
			return c.PowerOn(cmd.Context(), args[0])
		},
	}
}
