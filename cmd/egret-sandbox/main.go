// Command egret-sandbox runs a Kubernetes cluster with Egret on this machine: up, down, status, kubectl,
// kubeconfig, load, exec, power-off, power-on, shut-down, partition, heal, process and demo.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/version"
)

func main() {
	if err := rootCommand().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "egret-sandbox:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	o := sandbox.Defaults()
	cmd := &cobra.Command{
		Use: "egret-sandbox", Short: "A Kubernetes cluster with Egret on this machine",
		Version:      version.OfProgram(),
		SilenceUsage: true, SilenceErrors: true, TraverseChildren: true,
	}
	cmd.SetVersionTemplate(version.Template)
	cmd.PersistentFlags().StringVar(&o.Name, "name", o.Name, "name of the sandbox; several can run side by side")
	cmd.PersistentFlags().StringVar(&o.StateDir, "state-dir", o.StateDir,
		"folder of all sandboxes' state and disks; on ext4 or the like")
	cmd.AddCommand(upCommand(&o), downCommand(&o), statusCommand(&o), kubectlCommand(&o), kubeconfigCommand(&o),
		loadCommand(&o), execCommand(&o), processCommand(&o), demoCommand(&o), initCommand(), serveCommand())
	cmd.AddCommand(faultCommands(&o)...)
	return cmd
}

func upCommand(o *sandbox.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "up", Short: "Bring the cluster up, or check and repair the one that is there", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The one command that has to clean up when it is interrupted.
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			_, err := sandbox.Up(ctx, *o, cmd.OutOrStdout())
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Nodes, "nodes", o.Nodes, "number of nodes")
	f.IntVar(&o.ExternalHosts, "external-hosts", o.ExternalHosts, "number of hosts outside the cluster")
	f.StringVar((*string)(&o.GatewayMode), "gateway-mode", string(o.GatewayMode), "shared or local")
	f.StringVar((*string)(&o.IPFamily), "ip-family", string(o.IPFamily), "ipv4, ipv6 or dual")
	f.IntVar(&o.SecondaryNetworks, "secondary-networks", o.SecondaryNetworks,
		"number of networks beside the primary one, with a link of every node and host each")
	f.IntVar(&o.HealthcheckPort, "egressip-node-healthcheck-port", o.HealthcheckPort,
		"port of the agents' health service (gRPC); 0: egress nodes are probed at TCP port 9")
	f.IntVar(&o.ReachabilityTimeout, "egressip-reachability-total-timeout", o.ReachabilityTimeout,
		"seconds of silence after which an egress node is dead; 0: no probes")
	f.BoolVar(&o.MetalLB, "metallb", o.MetalLB, "run MetalLB; the first external host is a BGP router")
	f.StringVar((*string)(&o.CNI), "cni", string(o.CNI), "pod network: egret, ptp as the plain reference, or none")
	return cmd
}

func downCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Remove the cluster and everything of it", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return sandbox.Down(*o) },
	}
}

func statusCommand(o *sandbox.Options) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "status", Short: "Show nodes, external hosts and networks", Args: cobra.NoArgs,
		RunE: sandboxCommand(o, func(c *sandbox.Cluster, cmd *cobra.Command, _ []string) error {
			return printStatus(cmd.OutOrStdout(), c.Status(cmd.Context()), output)
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or empty for people")
	return cmd
}

func execCommand(o *sandbox.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec NODE|HOST -- CMD...", Short: "Run a command inside a node or in an external host's network",
		Args: cobra.MinimumNArgs(2),
		RunE: sandboxCommand(o, func(c *sandbox.Cluster, _ *cobra.Command, args []string) error {
			if args[1] == "--" { // not taken away by the flag parser, which stops at the first argument
				args = slices.Delete(args, 1, 2)
			}
			command, err := c.Command(args[0], args[1:]...)
			if err != nil {
				return err
			}
			return replaceProcess(command, os.Environ())
		}),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}
