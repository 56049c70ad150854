// Command egret-node is the agent of one node: it carries out on its own node what EgressIPs, pods and Services ask
// for. egret-node release makes the node give up its egress IPs before it is shut down; egret-node remove undoes all
// that agents have done on the node; egret-node plan and egret-node trace print what the running agent wants of its
// node, and which way a packet takes.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/egret-net/egret/internal/logging"
	"github.com/egret-net/egret/internal/node"
	"github.com/egret-net/egret/internal/node/inspect"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/settings"
	"github.com/egret-net/egret/internal/version"
	"github.com/egret-net/egret/internal/world"
)

func main() {
	commands := map[string]func() error{"release": releaseNode, "remove": removeFromNode, "plan": printPlan,
		"trace": printTrace}
	start := runAgent
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		start = commands[os.Args[1]]
	}
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "egret-node:", err)
		os.Exit(1)
	}
}

func runAgent() error {
	o, reach, logs, err := readFlags(os.Args[1:])
	if err != nil {
		return err
	}
	o.Version = version.OfProgram()
	// The agent's heap is one world and one plan, nearly all of it live: collecting at half the growth costs little
	// time and a fifth of the memory less.
	debug.SetGCPercent(50)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := logs.StartLog(ctx, os.Stderr)
	reach.Warn(log)
	return node.Run(ctx, o, log)
}

func readFlags(args []string) (o node.Options, reach *settings.Reachability, logs *logging.Options, err error) {
	return readInto(flag.NewFlagSet("egret-node", flag.ExitOnError), args)
}

// readInto adds the agent's flags to those of f, and reads them all.
func readInto(f *flag.FlagSet, args []string) (o node.Options, reach *settings.Reachability, logs *logging.Options,
	err error) {
	mode := f.String("gateway-mode", "shared", "shared: pods leave through the gateway router; local: through the host")
	uplink := f.String("gateway-interface", "eth0", "the node's uplink")
	datapath := f.String("datapath", "system", "of Open vSwitch: system is the kernel's, netdev is in userspace")
	asked := f.Uint("node-health-port", 0, "TCP `port` at which load balancers ask whether this node takes "+
		"connections, kube-proxy's being 10256; 0: none")
	lease := f.Int("agent-lease-duration", 40, "`seconds` after which controllers take the agent for dead if it has "+
		"not renewed its Lease, 20 to 3600; 0: it has none, and nobody does")
	agents := f.Uint("agent-port", 9413, "TCP `port` at nodes' management ports at which agents ask each other "+
		"whether they have followed what pods and egress IPs there are; 0: this one answers nobody")
	logs = logging.AddFlag(f)
	f.BoolVar(&logs.Verbose, "v", false, "log more, from the start; later SIGUSR1 turns that on, and SIGUSR2 off")
	version.AddFlag(f)
	pathFlags(f, &o)
	subnets, tunnel := settings.SubnetFlags(f), settings.TunnelFlags(f)
	reach, said := settings.Flags(f), settings.MetricsFlags(f)
	server := settings.APIServerFlags(f)
	if err = f.Parse(args); err != nil {
		return o, reach, logs, err
	}
	for _, read := range []func() error{
		func() error { return settings.FromEnvironment(f, os.Environ()) },
		func() (err error) { o.APIServer, err = server.AddressFor(o.Kubeconfig); return err },
		reach.Read, said.Check, logs.CheckFormat,
		func() error { o.Lease = time.Duration(*lease) * time.Second; return node.CheckLease(o.Lease) },
		func() error { return subnets.Into(&o.Config) },
		func() error { return tunnel.Into(&o.Config) },
		func() (err error) { o.Config.GatewayMode, err = gatewayMode(*mode); return err },
		func() (err error) { o.Config.NodeHealthPort, err = tcpPort("node-health-port", *asked); return err },
		func() (err error) { o.Config.AgentPort, err = tcpPort("agent-port", *agents); return err },
		func() (err error) { o.BootID, err = bootID(); return err },
	} {
		if err = settings.NameKeys(read()); err != nil {
			return o, reach, logs, err
		}
	}
	if o.Node == "" {
		return o, reach, logs, fmt.Errorf("this node's name is not known: give --node-name")
	}
	o.Config.ReachabilityTimeout = reach.Timeout
	o.Health = node.Health{Port: reach.Port, TLS: probe.Files(reach.TLS)}
	o.Metrics, o.Healthz = said.Options, said.Healthz
	o.Config.UplinkInterface, o.Config.Bridge, o.Config.UserspaceOVS = *uplink, "br"+*uplink, *datapath == "netdev"
	return o, reach, logs, nil
}

func tcpPort(flag string, n uint) (uint16, error) {
	if n > math.MaxUint16 {
		return 0, fmt.Errorf("--%s %d: give a TCP port, or 0 for none", flag, n)
	}
	return uint16(n), nil
}

// pathFlags are where the agent finds what it works with.
func pathFlags(f *flag.FlagSet, o *node.Options) {
	f.StringVar(&o.Node, "node-name", os.Getenv("NODE_NAME"), "this node's name in Kubernetes")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "way to the API server; empty: the pod's own")
	f.StringVar(&o.OVSRunDir, "ovs-rundir", "/run/openvswitch", "folder of Open vSwitch's sockets")
	f.StringVar(&o.Northbound, "ovn-nb", "unix:/run/ovn/ovnnb_db.sock", "this zone's Northbound database")
	f.StringVar(&o.Southbound, "ovn-sb", "unix:/run/ovn/ovnsb_db.sock", "this zone's Southbound database")
	f.StringVar(&o.CNISocket, "cni-socket", "/run/egret/cni.sock", "where egret-cni asks")
	f.StringVar(&o.AgentSocket, "agent-socket", inspect.DefaultSocket, "where egret-node plan and egret-node trace ask")
	f.StringVar(&o.BootMarker, "boot-marker", "/run/egret/booted", "a file that is gone after a boot")
	f.StringVar(&o.HostRoot, "host-root", "/", "`folder` with the host's /etc and /usr: files there name routing tables")
	f.StringVar(&o.CNIConfDir, "cni-conf-dir", "/etc/cni/net.d", "where the container runtime looks for networks")
}

func bootID() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(boot)), nil
}

func gatewayMode(s string) (world.GatewayMode, error) {
	m := world.GatewayMode(s)
	if m != world.SharedGateway && m != world.LocalGateway {
		return m, fmt.Errorf("gateway mode %q: give shared or local", s)
	}
	return m, nil
}
