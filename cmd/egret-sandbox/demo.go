package main

import (
	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/sandbox/demo"
)

func demoCommand(o *sandbox.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", Short: "Bring the cluster up and show EgressIPs with real packets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), *o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar((*string)(&o.GatewayMode), "gateway-mode", string(o.GatewayMode), "shared or local")
	f.StringVar((*string)(&o.IPFamily), "ip-family", string(o.IPFamily), "ipv4, ipv6 or dual")
	return cmd
}
