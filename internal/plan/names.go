package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/ref"
)

// Names gives every thing of one logical network its name or its number, as OVN-Kubernetes does: people and their tools
// look for these. Rows of the default network have plain names, and rows of another network have its name in front.
// Nothing else makes such a name.
type Names struct {
	Network string
	ID      int // 0 is the default network's
}

// DefaultNames are those of the cluster default network.
func DefaultNames() Names { return Names{Network: ref.DefaultNetwork} }

// Row is the name of a row, or the id of an address set, of which each network can have one.
func (n Names) Row(name string) string { return n.rowPrefix() + name }

// rowPrefix is the network's name in front of its rows, and no other network's. OVN's names cannot have '-' everywhere:
// '.' is in its place, as with OVN-Kubernetes. All other characters but lower-case letters and digits, '.' too, are
// written as their number behind an X, which nothing else becomes: networks a-b and a.b are two.
func (n Names) rowPrefix() string {
	if n.Network == ref.DefaultNetwork {
		return ""
	}
	var out strings.Builder
	for _, c := range []byte(n.Network) {
		switch {
		case c == '-':
			out.WriteByte('.')
		case c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z':
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "X%02x", c)
		}
	}
	return out.String() + "_"
}

// CutNetwork returns what stands in front of the name of a row, or the id of an address set, that is named for its
// content ("egressip/..."): the Row of "" of its network; and the name in the default network.
func CutNetwork(name string) (prefix, row string) {
	feature, _, _ := strings.Cut(name, "/")
	i := strings.LastIndex(feature, "_") + 1
	return name[:i], name[i:]
}

// Routers and switches.

func (n Names) ClusterRouter() string { return n.Row("ovn_cluster_router") }
func (n Names) JoinSwitch() string    { return n.Row("join") }
func (n Names) TransitSwitch() string { return n.Row("transit_switch") }

// GatewayRouter is the router between the join switch and the uplink of a node.
func (n Names) GatewayRouter(node string) string { return "GR_" + n.Row(node) }

// NodeSwitch is the switch of a node's pods.
func (n Names) NodeSwitch(node string) string { return n.Row(node) }

// ExternalSwitch is the switch outside of a node's gateway router: with the localnet port of the node's uplink, or of a
// network beside the default one, with the port to the default network's cluster router.
func (n Names) ExternalSwitch(node string) string { return "ext_" + n.Row(node) }

// Groups of load balancers.

// ServiceLBGroup holds the load balancers that a node switch refers to.
func (n Names) ServiceLBGroup() string { return n.Row("egret-services") }

// GatewayLBGroup holds those of a gateway router.
func (n Names) GatewayLBGroup() string { return n.Row("egret-services-gateway") }

// Ports, named by what they are on and what they lead to: r is a router, s the node switch, ts the transit switch,
// j the join switch, e the external switch.

func (n Names) RouterToNodeSwitch(node string) string {
	return routersToNodeSwitch + n.NodeSwitch(node)
}
func (n Names) NodeSwitchToRouter(node string) string {
	return nodeSwitchesToRouter + n.NodeSwitch(node)
}
func (n Names) RouterToTransit(node string) string   { return n.Row(routersToTransit + node) }
func (n Names) TransitToRouter(node string) string   { return n.Row(transitToRouters + node) }
func (n Names) RouterToJoin() string                 { return "rtoj-" + n.ClusterRouter() }
func (n Names) JoinToRouter() string                 { return "jtor-" + n.ClusterRouter() }
func (n Names) GatewayToJoin(node string) string     { return "rtoj-" + n.GatewayRouter(node) }
func (n Names) JoinToGateway(node string) string     { return "jtor-" + n.GatewayRouter(node) }
func (n Names) GatewayToExternal(node string) string { return "rtoe-" + n.GatewayRouter(node) }
func (n Names) ExternalToGateway(node string) string { return "etor-" + n.GatewayRouter(node) }

// LinkToNetwork is the default network's cluster router's port on the external switch of a network beside it, and
// ExternalToCluster is that switch's. l is the link.
func (n Names) LinkToNetwork(node string) string     { return LinksToNetworks + n.Row(node) }
func (n Names) ExternalToCluster(node string) string { return linksToCluster + n.Row(node) }

// LinksToNetworks is what names of LinkToNetwork begin with.
const LinksToNetworks = "rtol-"

// Beginnings of the names of other ports.
const (
	routersToNodeSwitch  = "rtos-"
	nodeSwitchesToRouter = "stor-"
	routersToTransit     = "rtots-"
	transitToRouters     = "tstor-"
	linksToCluster       = "ltor-"
	hostPorts            = "k8s-"
)

// LinkedNetwork is the name of the network that a LinkToNetwork of a node leads to.
func LinkedNetwork(link, node string) string {
	prefix := strings.TrimSuffix(strings.TrimPrefix(link, LinksToNetworks), "_"+node)
	var out strings.Builder
	for i := 0; i < len(prefix); i++ {
		switch c := prefix[i]; c {
		case '.':
			out.WriteByte('-')
		case 'X':
			number, _ := strconv.ParseUint(prefix[i+1:i+3], 16, 8)
			out.WriteByte(byte(number))
			i += 2
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// Localnet is the port of the external switch that leads to the gateway bridge.
func (n Names) Localnet(bridge, node string) string { return bridge + "_" + n.Row(node) }

// HostPort is the port of the node switch that the host's management port is plugged into.
func (n Names) HostPort(node string) string { return hostPorts + n.Row(node) }

// ManagementPort is the host's interface into its node switch.
func (n Names) ManagementPort() string { return managementPorts + Itoa(n.ID) }

const managementPorts = "ovn-k8s-mp"

// IsManagementPort says whether an interface of the host is a network's management port.
func IsManagementPort(dev string) bool { return strings.HasPrefix(dev, managementPorts) }

// PodPort is a pod's port on the node switch, and the iface-id of its OVS interface.
func (n Names) PodPort(namespace, name string) string { return n.Row(namespace + "_" + name) }

// NodesOfPort returns the nodes of which some network can have a port, or a zone of conntrack, with the name of a pod's
// port. Networks and nodes are named by others than pods: network blue has port blue_tstor-n2, and so has pod tstor-n2
// of namespace blue. The answer does not depend on which networks there are.
func NodesOfPort(bridge, namespace, pod string) (nodes []string) {
	for _, prefix := range []string{routersToTransit, transitToRouters} {
		if node, is := strings.CutPrefix(pod, prefix); is {
			nodes = append(nodes, node)
		}
	}
	prefixes := []string{routersToNodeSwitch, nodeSwitchesToRouter, LinksToNetworks, linksToCluster, hostPorts}
	begins := func(prefix string) bool { return strings.HasPrefix(namespace, prefix) }
	if slices.ContainsFunc(prefixes, begins) || strings.HasSuffix("_"+bridge, "_"+namespace) {
		nodes = append(nodes, pod)
	}
	if slices.Contains(natZones, "_"+pod) {
		nodes = append(nodes, namespace)
	}
	return nodes
}

// natZones are the ends of the names of conntrack zones. ovn-controller gives two to each router and switch, and one to
// each pod's port, by its name. In a switch's first one it translates what pods send to themselves by a Service.
var natZones = []string{snatZone, "_dnat"}

const snatZone = "_snat"

// Numbers.

// TransitKey is the transit switch's tunnel key: the same number in every zone makes them one switch. OVN leaves 4096
// keys free for that.
func (n Names) TransitKey() int { return 16711683 + n.ID }

// ovnCTMark and hostCTMark are the bits of ct_mark, in ZoneGateway, of OVN's and of the host's connections. Where the
// host's is set, OVN's does not count.
const (
	ovnCTMark  = 1
	hostCTMark = 2
)

// PodPorts are the source ports of pods' packets that leave with their node's address. None of them is a node port
// (30000-32767) or one that the kernel gives to the host's own connections (32768-60999 in ip_local_port_range), and
// few servers of hosts listen there. A pod that could choose any port would take answers to its node's connections, or
// with one datagram a client's connection to a node port.
const PodPorts = "11000-29999"

// LivenessPort is the tunnel port to the node of an id on LivenessBridge: it is of no network.
func LivenessPort(id int) string { return "bfd-" + Itoa(id) }

// SNATZone is the conntrack zone that ovn-controller gives to a router's translation of sources.
func SNATZone(router string) string { return router + snatZone }
