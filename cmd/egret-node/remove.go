package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"github.com/egret-net/egret/internal/node/removal"
	"github.com/egret-net/egret/internal/version"
)

// removeFromNode undoes what agents have done on this node.
func removeFromNode() error {
	f, o := flag.NewFlagSet("egret-node remove", flag.ExitOnError), removal.Options{}
	f.StringVar(&o.CNIBinDir, "cni-bin-dir", "/opt/cni/bin", "`folder` of the container runtime's plugins")
	f.StringVar(&o.OVNState, "ovn-state", "/var/lib/ovn", "`folder` of OVN's databases, which is emptied")
	f.StringVar(&o.OVSState, "ovs-state", "", "`folder` of Open vSwitch's database, which is emptied when Open vSwitch "+
		"does not run; empty: it is the host's own")
	f.BoolVar(&o.KeepObjects, "keep-objects", false, "leave annotations of the Node, the EgressNode and the Lease: no "+
		"API server is needed")
	agent, _, logs, err := readInto(f, os.Args[2:])
	if err != nil {
		return err
	}
	o.Options, o.Version = agent, version.OfProgram()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return removal.Run(ctx, o, logs.StartLog(ctx, os.Stderr))
}
