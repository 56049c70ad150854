package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/host"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
)

// bringUpHost makes the gateway bridge of the uplink, with the flows that follow from this host's own facts: nothing in
// it needs the API server, which may be behind that very bridge. Closed, nothing passes that comes from OVN.
func bringUpHost(ctx context.Context, o Options, t *targets, closed bool) error {
	datapath := "system"
	if o.Config.UserspaceOVS {
		datapath = "netdev"
	}
	integration := ovs.Bridge{Name: plan.IntegrationBridge, DatapathType: datapath, FailMode: "secure"}
	if err := t.ovs.EnsureBridge(ctx, integration); err != nil {
		return err
	}
	if o.Config.ReachabilityTimeout > 0 {
		liveness := ovs.Bridge{Name: plan.LivenessBridge, DatapathType: datapath, FailMode: "secure"}
		if err := t.ovs.EnsureBridge(ctx, liveness); err != nil {
			return err
		}
	}
	uplink := ovs.Uplink{Bridge: o.Config.Bridge, Device: o.Config.UplinkInterface, DatapathType: datapath}
	var late error
	err := t.ovs.MoveUplink(ctx, uplink, func(ctx context.Context) error {
		base, err := basePlan(ctx, o, closed)
		if err != nil {
			return err
		}
		if closed {
			t.flow.Forget() // ovs-vswitchd may have been restarted meanwhile
		}
		late, err = growBase(ctx, base, t.nft.EarlyPlane(), t.flow)
		return err
	})
	return errors.Join(err, late)
}

// growBase writes the host's rules and the bridge's flows. Rules that are late do not keep the host from its network,
// which needs the flows: from OVN nothing passes yet, or all is as a former start has left it.
func growBase(ctx context.Context, base *plan.State, rules, flows plane.Plane) (late, err error) {
	late = rules.Grow(ctx, base)
	return late, flows.Grow(ctx, base)
}

// basePlan is what the host needs, whatever the cluster is.
func basePlan(ctx context.Context, o Options, closed bool) (*plan.State, error) {
	h, err := route.ReadHost(ctx)
	if err != nil {
		return nil, err
	}
	facts := host.Facts(h, &o.Config, nil)
	if facts == nil {
		return nil, fmt.Errorf("neither %s nor %s has an address: configure the uplink", o.Config.UplinkInterface,
			o.Config.Bridge)
	}
	kinds := all.ServedKinds()
	w := kinds.NewWorld(o.Node, &o.Config)
	w.SetHost(facts)
	base := compile.Full(w, kinds.AllFeatures())
	if closed {
		shutIngress(base)
	}
	return base, nil
}

// connectAPI asks the API server nothing yet.
func connectAPI(o Options) (*kube.Contact, *kube.Clients, error) {
	config, err := kube.Config(o.Kubeconfig, o.APIServer, 200, "egret-node/"+o.Version)
	if err != nil {
		return nil, nil, err
	}
	contact := kube.NewContact(config)
	clients, err := kube.NewClients(config)
	return contact, clients, err
}

// tellOfBoot posts an Event before there is an agent: the host's network waits neither for the API server nor for a
// kubeconfig.
func tellOfBoot(ctx context.Context, o Options, reason, text string) error {
	_, clients, err := connectAPI(o)
	if err != nil {
		return err
	}
	return postEvent(ctx, clients, o.Node, ofThisNode(o.Node, reason, "Boot", text))
}
