package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// runControllerManager runs all default controllers until ctx ends.
func runControllerManager(ctx context.Context, c config) error {
	opts, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	known, disabled, aliases := kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases()
	fs := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, f := range opts.Flags(known, disabled, aliases).FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(append(controllerManagerArgs(c), c.kcmArgs...)); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	kc, err := opts.Config(ctx, known, disabled, aliases)
	if err != nil {
		return err
	}
	return kcm.Run(ctx, kc.Complete())
}

func controllerManagerArgs(c config) []string {
	return append(clientArgs(c, "controller-manager"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pkiFile("sa.key"),
		"--root-ca-file="+c.pkiFile("ca.crt"),
		"--cluster-signing-cert-file="+c.pkiFile("ca.crt"),
		"--cluster-signing-key-file="+c.pkiFile("ca.key"),
		"--allocate-node-cidrs=false", // the network plugin allocates them
		"--configure-cloud-routes=false",
		// created at start; the default is under /usr
		"--flex-volume-plugin-dir="+filepath.Join(c.dir, "volume-plugins"),
		// A dead node is NotReady after 8 s: kubelets must then renew every 2 s or so
		// (nodeStatusUpdateFrequency 2s, nodeLeaseDurationSeconds 8).
		"--node-monitor-period=2s",
		"--node-monitor-grace-period=8s",
	)
}

// runScheduler runs the scheduler until ctx ends.
func runScheduler(ctx context.Context, c config) error {
	opts := scheduleroptions.NewOptions()
	fs := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, f := range opts.Flags.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(clientArgs(c, "scheduler")); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	completed, sched, err := scheduler.Setup(ctx, opts)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, completed, sched)
}

// clientArgs are common to the two components that are clients only: no leader election, no port.
func clientArgs(c config, name string) []string {
	kubeconfig := c.kubeconfig(name)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
	}
}
