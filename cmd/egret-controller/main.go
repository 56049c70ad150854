// Command egret-controller decides for the cluster: ids and subnets of nodes, and which node hosts which egress IP.
// Several may run; one leads. It writes Kubernetes objects only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/logging"
	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/metrics/collectors"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/settings"
	"github.com/egret-net/egret/internal/version"
	"github.com/egret-net/egret/internal/world"
)

// requestsPerSecond to the API server; the server's own fairness protects it.
const requestsPerSecond = 500

type options struct {
	kubeconfig, nodeName string
	apiServer            string // host:port; "": as the kubeconfig says
	config               world.Config
	logs                 *logging.Options
	reach                *settings.Reachability
	metrics              *settings.Metrics
}

func main() {
	o, err := parseFlags(os.Args[1:])
	if err == nil {
		err = runController(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "egret-controller:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("egret-controller", flag.ExitOnError)
	version.AddFlag(f)
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"`file` that says how to reach the API server; without it, as a pod does")
	f.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"),
		"`name` of the node that this runs on: the identity in the election")
	subnets := settings.SubnetFlags(f)
	f.IntVar(&o.config.EncapPort, "encap-port", world.GenevePort, "UDP `port` of nodes' tunnels, as agents have it")
	o.logs = logging.AddFlag(f)
	verbosity := f.Int("v", 0, "`level` of detail in the log from the start: 0, or 1 and more for debugging; later "+
		"SIGUSR1 turns that on, and SIGUSR2 off")
	o.reach, o.metrics = settings.Flags(f), settings.MetricsFlags(f)
	server := settings.APIServerFlags(f)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.logs.Verbose = *verbosity > 0
	for _, check := range []func() error{
		func() error { return settings.FromEnvironment(f, os.Environ()) },
		func() (err error) { o.apiServer, err = server.AddressFor(o.kubeconfig); return err },
		o.reach.Read, o.metrics.Check, o.logs.CheckFormat,
	} {
		if err := settings.NameKeys(check()); err != nil {
			return nil, err
		}
	}
	o.config.ReachabilityTimeout = o.reach.Timeout
	if o.nodeName == "" {
		return nil, fmt.Errorf("no node name: give --node-name, or NODE_NAME in the environment")
	}
	return o, settings.NameKeys(subnets.Into(&o.config))
}

func runController(o *options) error {
	// The heap is one world and what was decided about it, nearly all of it live: see egret-node.
	debug.SetGCPercent(50)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := o.logs.StartLog(ctx, os.Stderr)
	o.reach.Warn(log)
	config, err := kube.Config(o.kubeconfig, o.apiServer, requestsPerSecond, "egret-controller/"+version.OfProgram())
	if err != nil {
		return err
	}
	clients, err := kube.NewClients(config)
	if err != nil {
		return err
	}
	source := kube.NewSource(clients, log, kube.Followed(all.ServedKinds().AllResources()...)...)
	own := controller.NewMetrics()
	own.Registry.MustRegister(collectors.NewCertificates(map[string]string{"metrics": o.metrics.TLS.Cert,
		"health": o.reach.TLS.Cert}))
	c := controller.New(&o.config, all.ServedKinds(), source, controller.APIWriter{Clients: clients,
		Node: o.nodeName}, own, log)
	prober := c.Probe(o.nodeName, o.reach.Port, probe.Files(o.reach.TLS), o.reach.Witnesses)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { source.Run(ctx); return nil })
	group.Go(func() error { c.Run(ctx); return nil })
	group.Go(func() error { return prober.Run(ctx) })
	group.Go(func() error { controller.FollowAgents(ctx, clients.AgentLeases, c.AgentFound, log); return nil })
	group.Go(func() error { return controller.Elect(ctx, config, o.nodeName, prober, c) })
	health := func() metrics.Health { return metrics.Health{Alive: c.Alive(), Missing: missingLists(source)} }
	group.Go(func() error { return metrics.Serve(ctx, o.metrics.Options, own.Registry, health, log) })
	group.Go(func() error { return metrics.ServeHealth(ctx, o.metrics.Healthz, health) })
	return group.Wait()
}

// missingLists returns what keeps a controller from being ready to lead, a line each.
func missingLists(source *kube.Source) []string {
	unlisted := source.ListsMissing()
	if len(unlisted) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("cluster: these lists are not read yet: %s: is the API server reached, and is deploy "+
		"applied?", strings.Join(unlisted, ", "))}
}
