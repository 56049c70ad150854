package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/settings"
	"github.com/egret-net/egret/internal/world"
)

// Where deploy/cluster keeps what agents are told.
const (
	configNamespace = "egret-system"
	configName      = "egret"
)

// options are the flags that all commands have: kubectl's own, and the agents'.
type options struct {
	flags            *pflag.FlagSet
	access           clientcmd.ClientConfig
	subnets          *settings.Subnets
	tunnel           *settings.Tunnel
	mode, link, path *string
}

func newOptions(flags *pflag.FlagSet) *options {
	o := &options{flags: flags}
	agents := flag.NewFlagSet("", flag.ContinueOnError)
	o.subnets, o.tunnel = settings.SubnetFlags(agents), settings.TunnelFlags(agents)
	o.mode = agents.String("gateway-mode", "shared", "`mode` of the nodes' gateways: shared or local")
	o.link = agents.String("gateway-interface", "eth0", "the nodes' uplink")
	o.path = agents.String("datapath", "system", "of Open vSwitch: system is the kernel's, netdev is in userspace")
	from := fmt.Sprintf(" (else as ConfigMap %s/%s says)", configNamespace, configName)
	agents.VisitAll(func(f *flag.Flag) { f.Usage += from })
	o.flags.AddGoFlagSet(agents)
	rules, overrides := clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}
	o.flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "`path` of the kubeconfig file")
	clientcmd.BindOverrideFlags(overrides, o.flags, clientcmd.RecommendedConfigOverrideFlags(""))
	o.access = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	return o
}

// podKey is the key of a pod that is named with its namespace, or without.
func (o *options) podKey(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	namespace, _, err := o.access.Namespace()
	return namespace + "/" + name, err
}

func (o *options) newClients() (*kube.Clients, error) {
	config, err := o.access.ClientConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "kubectl-egret"
	return kube.NewClients(config)
}

// agentConfig is what agents are told: by flags here, else by the ConfigMap, else their defaults.
func (o *options) agentConfig(ctx context.Context, clients *kube.Clients) (*world.Config, error) {
	m := &corev1.ConfigMap{}
	err := clients.Core.Get().Namespace(configNamespace).Resource("configmaps").Name(configName).Do(ctx).Into(m)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read ConfigMap %s/%s, which says how agents were started: %w", configNamespace,
			configName, err)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		name := settings.FlagOf(key)
		if f := o.flags.Lookup(name); f == nil || f.Changed || m.Data[key] == "" {
			continue
		}
		if err := o.flags.Set(name, m.Data[key]); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s, %s: %w", configNamespace, configName, key, err)
		}
	}
	if mode := world.GatewayMode(*o.mode); mode != world.SharedGateway && mode != world.LocalGateway {
		return nil, fmt.Errorf("gateway mode %q: give shared or local", mode)
	}
	c := &world.Config{GatewayMode: world.GatewayMode(*o.mode), UplinkInterface: *o.link, Bridge: "br" + *o.link,
		UserspaceOVS: *o.path == "netdev"}
	if err := o.subnets.Into(c); err != nil {
		return nil, err
	}
	return c, o.tunnel.Into(c)
}
