package service

import (
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// scope is where a load balancer is, as OVN-Kubernetes names it.
type scope string

const (
	scopeCluster     scope = "cluster"           // on every node switch, and the same there
	scopeSwitch      scope = "node_switch"       // on one
	scopeRouter      scope = "node_router"       // on one gateway router, which translates the source
	scopeLocalRouter scope = "node_local_router" // on one gateway router, which keeps it
)

// balancers are the rows of one Service, under construction: by scope and protocol, the endpoints of each address and
// port.
type balancers map[balancer]map[netip.AddrPort][]world.Endpoint

type balancer struct {
	scope    scope
	protocol string
}

// addVIP is one address and port. Without endpoints it stays, and rejects.
func (b balancers) addVIP(at scope, protocol string, ip netip.Addr, port uint16, to []world.Endpoint) {
	id := balancer{at, protocol}
	if b[id] == nil {
		b[id] = map[netip.AddrPort][]world.Endpoint{}
	}
	b[id][netip.AddrPortFrom(ip, port)] = to
}

func (b balancers) writeRows(c *world.Config, names plan.Names, node string, s *world.Service,
	out *plan.Rows) {
	for id, endpoints := range b {
		if lacksConnectionEnd(id.protocol) {
			addDatagramRows(id.protocol, endpoints, out)
		}
		name := names.Row("Service_") + s.Key() + "_" + strings.ToUpper(id.protocol) + "_" + string(id.scope)
		if id.scope != scopeCluster {
			name += "_" + node
		}
		group := plan.Group(names.ServiceLBGroup())
		if id.scope == scopeRouter || id.scope == scopeLocalRouter {
			group = plan.Group(names.GatewayLBGroup())
		}
		cols := plan.Cols{
			"name": name, "protocol": id.protocol, "vips": vipsColumn(endpoints), "options": optionsColumn(c, s, id),
			"external_ids": map[string]string{"k8s.ovn.org/kind": "Service", "k8s.ovn.org/owner": s.Key()},
		}
		if s.Affinity >= lastingAffinity {
			cols["selection_fields"] = []string{"ip_src", "ipv6_src"}
		}
		out.AddNB(plan.RowID{Table: "Load_Balancer", Name: name}, group, cols)
	}
}

// lacksConnectionEnd reports whether nothing ends connections of a protocol whose endpoint has gone. A client of UDP
// goes on sending from one port, and one of SCTP begins again from the same: its conntrack entry keeps it with that
// endpoint. A pod that ends finishes its TCP connections, and a client of TCP begins again from another port.
func lacksConnectionEnd(protocol string) bool { return protocol != "tcp" }

// addDatagramRows are the translations of such a protocol. OVN flushes the entries of endpoints that have gone
// (ct_flush), but before OVS has let go of all it had made of the former flows: a client that goes on sending makes new
// ones.
func addDatagramRows(protocol string, endpoints map[netip.AddrPort][]world.Endpoint, out *plan.Rows) {
	for from, all := range endpoints {
		for _, to := range all {
			plan.Add(&out.Datagrams, plan.Datagram{Protocol: protocol, From: from, To: to.AddrPort, OVN: true},
				plan.None{})
		}
	}
}

// vipsColumn returns the column vips.
func vipsColumn(endpoints map[netip.AddrPort][]world.Endpoint) map[string]string {
	out := make(map[string]string, len(endpoints))
	for at, all := range endpoints {
		list := make([]string, len(all))
		for i, e := range all {
			list[i] = e.String()
		}
		out[at.String()] = strings.Join(list, ",")
	}
	return out
}

// lastingAffinity is the session affinity, in seconds, from which on a client stays with its endpoint for as long as
// the endpoints do: the API's default. A hash of the client's address does that. OVN's affinity_timeout ends it in
// time, but drops the packet that begins it. So the first connection of each client is late, or hangs where OVS'
// userspace datapath has tracked the dropped packet. That is for those who ask for an end.
const lastingAffinity = 10800

func optionsColumn(c *world.Config, s *world.Service, id balancer) map[string]string {
	skip := "false"
	if id.scope == scopeLocalRouter {
		skip = "true" // of the router's lb_force_snat_ip
	}
	o := map[string]string{
		"event": "false", "reject": "true", "skip_snat": skip,
		"neighbor_responder": "none",
		"hairpin_snat_ip":    c.Hairpin(world.V4).String() + " " + c.Hairpin(world.V6).String(),
	}
	if lacksConnectionEnd(id.protocol) {
		o["ct_flush"] = "true"
	}
	if s.Affinity > 0 && s.Affinity < lastingAffinity {
		o["affinity_timeout"] = plan.Itoa(s.Affinity)
	}
	return o
}
