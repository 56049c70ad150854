package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/sandbox"
)

func kubectlCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use: "kubectl ARGS...", Short: "Run kubectl against the cluster", DisableFlagParsing: true,
		RunE: sandboxCommand(o, func(c *sandbox.Cluster, cmd *cobra.Command, args []string) error {
			kubectl := c.Kubectl(cmd.Context(), args...)
			return replaceProcess(kubectl.Args, kubectl.Environ()) // each name once
		}),
	}
}

func kubeconfigCommand(o *sandbox.Options) *cobra.Command {
	path := false
	cmd := &cobra.Command{
		Use: "kubeconfig", Short: "Print the administrator's kubeconfig, for use on this machine", Args: cobra.NoArgs,
		RunE: sandboxCommand(o, func(c *sandbox.Cluster, cmd *cobra.Command, _ []string) error {
			if path {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
				return err
			}
			content, err := os.ReadFile(c.Kubeconfig())
			if err == nil {
				_, err = cmd.OutOrStdout().Write(content)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&path, "path", false, "print the name of the file")
	return cmd
}

func loadCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use: "load FILE...", Short: "Import image archives (docker save, OCI) into containerd of every node",
		Args: cobra.MinimumNArgs(1),
		RunE: sandboxCommand(o, func(c *sandbox.Cluster, cmd *cobra.Command, args []string) error {
			for _, file := range args {
				if err := c.LoadImages(cmd.Context(), file, cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
