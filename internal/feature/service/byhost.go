package service

import (
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// byHost says whether connections from outside to a Service come in through this host: in local gateway mode all do,
// and in shared mode two kinds. One is of networks beside the default one: by two gateway routers a packet would be
// given to conntrack more often than OVS' userspace datapath (3.5) allows on one way. The other is to a Service whose
// EgressService has a network, for their answers meet the host's routing rules only on the way that the connections
// came by.
func byHost(w *world.View, s *world.Service) bool {
	if w.Config.GatewayMode == world.LocalGateway || !isInDefaultNetwork(w, s) {
		return true
	}
	e := w.EgressService(s.Key())
	return e != nil && e.Table != (world.RoutingTable{}) && isHost(w, e)
}

// isHost says whether this node is a host of an EgressService, or one that leaves off to be: load balancers announce
// the Service there until the next one is ready.
func isHost(w *world.View, e *world.EgressService) bool {
	leaves := func(l world.Leaving) bool { return l.Node == w.Self }
	return e.Host == w.Self || e.Host == world.HostAll || slices.ContainsFunc(e.Leaving, leaves)
}
