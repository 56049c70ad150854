package featuretest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// cluster is the objects, and each node's view of them.
type cluster struct {
	files   []txtar.File
	config  *world.Config
	objects map[id]object
	views   map[string]*view
	now     time.Time // of the controller; it passes when a script says so
}

func newConfig(mode, family string) (*world.Config, error) {
	subnets := map[string][]world.ClusterSubnet{
		"ipv4": {{CIDR: netip.MustParsePrefix("10.244.0.0/16"), NodeLen: 24}},
		"ipv6": {{CIDR: netip.MustParsePrefix("fd00:10:244::/48"), NodeLen: 64}},
	}
	subnets["dual"] = slices.Concat(subnets["ipv4"], subnets["ipv6"])
	c := &world.Config{
		GatewayMode: world.GatewayMode(mode), ClusterSubnets: subnets[family],
		ServiceSubnets: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"),
			netip.MustParsePrefix("fd00:10:96::/112")},
		JoinSubnets: world.DefaultJoinSubnets(), TransitSubnets: world.DefaultTransitSubnets(),
		SlotSubnets: world.DefaultSlotSubnets(), MasqueradeSubnets: world.DefaultMasqueradeSubnets(),
		EncapPort: world.GenevePort, NodeHealthPort: 10256, AgentPort: 9413,
		ReachabilityTimeout: world.DefaultReachabilityTimeout,
		UplinkInterface:     "eth0", Bridge: "breth0", UserspaceOVS: true,
	}
	if c.GatewayMode != world.SharedGateway && c.GatewayMode != world.LocalGateway || len(c.ClusterSubnets) == 0 {
		return nil, fmt.Errorf("write: cluster shared|local ipv4|ipv6|dual")
	}
	return c, nil
}

// rememberPlans keeps every node's plan, for diff.
func (c *cluster) rememberPlans() error {
	for _, v := range c.views {
		p, err := v.compilePlan()
		if err != nil {
			return err
		}
		v.before = p
	}
	return nil
}

func (c *cluster) putObject(o object) {
	i := idOf(o)
	c.objects[i] = o
	if i.kind == "Node" && c.views[i.key] == nil {
		v := newView(i.key, c.config)
		for _, o := range c.objects {
			v.takeObject(o, false)
		}
		c.views[i.key] = v
	}
	c.tellViews(o, false)
}

// removeObject deletes an object; a node's agent goes with its Node.
func (c *cluster) removeObject(i id) error {
	o := c.objects[i]
	if o == nil {
		return fmt.Errorf("no %s %s", i.kind, i.key)
	}
	delete(c.objects, i)
	if i.kind == "Node" {
		delete(c.views, i.key)
	}
	c.tellViews(o, true)
	return nil
}

func (c *cluster) tellViews(o object, gone bool) {
	for _, v := range c.views {
		v.takeObject(o, gone)
	}
}

// controllerWorld is the world as egret-controller has it.
func (c *cluster) controllerWorld() *world.World {
	w, s := all.ServedKinds().NewWorld("", c.config), newSource()
	for _, o := range c.objects {
		takeInto(w, s, o, false)
	}
	return w
}

func (c *cluster) readFile(name string) ([]byte, error) {
	for _, f := range c.files {
		if f.Name == name {
			return f.Data, nil
		}
	}
	return shared.ReadFile("objects/" + name)
}

// readPlans is all nodes' plans, read for walking: a row that the tracer does not know is an error.
func (c *cluster) readPlans() (*trace.Cluster, error) {
	n := trace.Network{}
	for name, v := range c.views {
		p, err := v.compilePlan()
		if err != nil {
			return nil, err
		}
		n[name] = p
	}
	net, err := trace.Read(n)
	if err != nil {
		return nil, err
	}
	for name, v := range c.views {
		if h := v.world.Host(); h != nil {
			net.Know(name, lookUp(h.Tables))
		}
	}
	return net, nil
}

func (c *cluster) nodeNames() []string { return slices.Sorted(maps.Keys(c.views)) }

// joinLines joins lines, each with its end.
func joinLines(l []string) string {
	if len(l) == 0 {
		return ""
	}
	return strings.Join(l, "\n") + "\n"
}
