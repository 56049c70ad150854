// Command kubectl-egret is a plugin of kubectl. kubectl egret explain says with which source address a pod's packet
// leaves the cluster, by which way, and which objects decide about that and why. It reads the API, as who calls it may,
// and asks no node.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := pluginCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl egret:", err)
		os.Exit(1)
	}
}

func pluginCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "kubectl-egret", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl egret"},
		Short:        "Says with which source addresses pods leave the cluster, and why",
		Version:      version.OfProgram(),
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	c.SetVersionTemplate(version.Template)
	c.AddCommand(explainCommand())
	return c
}
