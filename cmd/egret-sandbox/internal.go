package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

// initCommand is a node's first process; egret-sandbox up starts it.
func initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init SPEC", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			spec, err := nodeinit.ReadSpec(args[0])
			if err != nil {
				return err
			}
			return nodeinit.Run(spec, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		},
	}
}

// serveCommand is an external host's HTTP server; egret-sandbox up starts it.
func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve-clientip", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sandbox.ServeClientIP(cmd.Context()) },
	}
}
