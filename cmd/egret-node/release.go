package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node"
	"github.com/egret-net/egret/internal/settings"
	"github.com/egret-net/egret/internal/version"
)

// releaseNode is for a shutdown unit or a drain: it returns when this node holds no egress IP any more.
func releaseNode() error {
	f := flag.NewFlagSet("egret-node release", flag.ExitOnError)
	name := f.String("node-name", os.Getenv("NODE_NAME"), "this node's name in Kubernetes")
	kubeconfig := f.String("kubeconfig", "", "way to the API server; empty: the pod's own")
	timeout := f.Duration("timeout", 10*time.Second, "how long to wait for other nodes to take over")
	leaving := f.Bool("if-leaving", false, "do nothing unless this node is drained, deleted or shut down: for the end "+
		"of an agent's pod")
	apiServer := settings.APIServerFlags(f)
	if err := f.Parse(os.Args[2:]); err != nil {
		return err
	}
	if err := settings.FromEnvironment(f, os.Environ()); err != nil {
		return err
	}
	server, err := apiServer.AddressFor(*kubeconfig)
	if err != nil {
		return err
	}
	if *name == "" {
		return fmt.Errorf("this node's name is not known: give --node-name")
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	config, err := kube.Config(*kubeconfig, server, 50, "egret-node/"+version.OfProgram())
	if err != nil {
		return err
	}
	clients, err := kube.NewClients(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if *leaving {
		return node.ReleaseIfLeaving(ctx, clients, *name, boot)
	}
	return node.Release(ctx, clients, *name, boot)
}
