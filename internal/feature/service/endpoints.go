package service

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Backends are the endpoints of one family behind one port of a Service, as new connections on this node are to use
// them. Each list is in order of address; every plane takes its own from here.
type Backends struct {
	// Internal is for connections to the cluster IP.
	Internal []world.Endpoint
	// Cluster is for connections to all other addresses of the Service, but those from outside if its external traffic
	// policy is Local.
	Cluster []world.Endpoint
	// LocalPods and LocalHost are for connections from outside with that policy: this node's own.
	LocalPods, LocalHost []world.Endpoint
}

// isTunnel reports whether an endpoint may be a node's end of tunnels. Hosts would send there with a node's own
// address, which the other node takes for a peer's, whatever the packet carries. Pods do not reach that port outside
// either (plan.ForgedTunnel), so that it does not matter which hosts are nodes, or become nodes later.
func isTunnel(c *world.Config, p world.ServicePort, e world.Endpoint) bool {
	_, what := clusterSubnetOf(c, e.Addr())
	return p.Protocol == "udp" && int(e.Port()) == c.EncapPort && what != forPods
}

// zoneLabel is where a node is (topology.kubernetes.io/zone of core/v1).
const zoneLabel = "topology.kubernetes.io/zone"

// BackendsOf chooses among reachable endpoints as kube-proxy does: the ready ones, or, without any, those that
// terminate and still serve (KEP-1669). If every ready one has a hint, it chooses those that hints give to this node,
// else to its zone (KEP-2433, KEP-3015).
func BackendsOf(w *world.View, s *world.Service, p world.ServicePort, f world.Family) Backends {
	network := w.PrimaryNetwork(s.Namespace)
	all := reachableEndpoints(w, s, p, f)
	if network != ref.DefaultNetwork {
		all = endpointsIn(w, s, network, p, f)
	}
	var b Backends
	b.Cluster = usableEndpoints(all)
	if hinted := hintedEndpoints(w, b.Cluster); len(hinted) > 0 {
		b.Cluster = hinted
	}
	b.Internal = b.Cluster
	if !s.ExternalLocal && !s.InternalLocal {
		return b
	}
	local := usableEndpoints(slices.DeleteFunc(all, func(e world.Endpoint) bool {
		return !isOnThisNode(w, network, e)
	}))
	if s.InternalLocal {
		b.Internal = local
	}
	if !s.ExternalLocal {
		return b
	}
	for _, e := range local {
		if OnOwnHost(w, e.Addr()) {
			b.LocalHost = append(b.LocalHost, e)
		} else {
			b.LocalPods = append(b.LocalPods, e)
		}
	}
	return b
}

// usableEndpoints are the ready ones, or those that end and still serve.
func usableEndpoints(all []world.Endpoint) []world.Endpoint {
	var ready, ending []world.Endpoint
	for _, e := range all {
		switch {
		case e.Ready:
			ready = append(ready, e)
		case e.Serving && e.Terminating:
			ending = append(ending, e)
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return ending
}

// hintedEndpoints are those for this node, or for its zone; none if one has no hint at all, or no hint names either.
func hintedEndpoints(w *world.View, all []world.Endpoint) []world.Endpoint {
	if len(all) == 0 || len(all[0].ForNodes)+len(all[0].ForZones) == 0 {
		return nil // what most are, without a look at the node
	}
	n := w.Node(w.Self)
	if n == nil || slices.ContainsFunc(all, func(e world.Endpoint) bool { return !e.Ready }) {
		return nil
	}
	if own := filterByHint(all, n.Name, func(e world.Endpoint) []string { return e.ForNodes }); len(own) > 0 {
		return own
	}
	zone := n.Labels[zoneLabel]
	if zone == "" {
		return nil
	}
	return filterByHint(all, zone, func(e world.Endpoint) []string { return e.ForZones })
}

// filterByHint are those whose hints have name, or none if one has no hints.
func filterByHint(all []world.Endpoint, name string, hints func(world.Endpoint) []string) []world.Endpoint {
	var out []world.Endpoint
	for _, e := range all {
		if len(hints(e)) == 0 {
			return nil
		}
		if slices.Contains(hints(e), name) {
			out = append(out, e)
		}
	}
	return out
}

// isOnThisNode says whether an endpoint is on this very node: its slice says so or does not say, and the address is one
// of the node's pods or its host's own.
func isOnThisNode(w *world.View, network string, e world.Endpoint) bool {
	if e.Node != "" && e.Node != w.Self {
		return false
	}
	n := w.Node(w.Self)
	return OnOwnHost(w, e.Addr()) || n != nil &&
		slices.ContainsFunc(n.In(network).Subnets, func(p netip.Prefix) bool { return p.Contains(e.Addr()) })
}

// OnOwnHost says whether an address is this host's own, so that its servers are host-networked.
func OnOwnHost(w *world.View, a netip.Addr) bool {
	h := w.Host()
	return h != nil && slices.Contains(h.Addrs, a)
}
