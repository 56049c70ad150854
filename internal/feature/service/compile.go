// Package service compiles Services into OVN load balancers.
//
// In: Services with their ready endpoints. Out: one Load_Balancer a Service and protocol, in the group that every node switch
// refers to. A Service without endpoints answers with a reject, not with silence.
package service

import (
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// ClusterIPs is the feature.
type ClusterIPs struct{}

func (ClusterIPs) Name() string    { return "service" }
func (ClusterIPs) Per() world.Kind { return world.KindService }

// Compile adds one Service's load balancers.
func (ClusterIPs) Compile(w *world.World, key string, out *plan.Rows) {
	s := w.Service(key)
	if _, _, ok := w.Zone(); !ok || s == nil || len(s.ClusterIPs) == 0 {
		return
	}
	vips := map[string]map[string]string{}
	for _, p := range s.Ports {
		if vips[p.Protocol] == nil {
			vips[p.Protocol] = map[string]string{}
		}
		for _, ip := range s.ClusterIPs {
			if Gets(w, s, world.Frontend{IP: ip, Protocol: p.Protocol, Port: p.Port}) {
				vips[p.Protocol][netip.AddrPortFrom(ip, p.Port).String()] = backends(BackendsOf(w, s, p, world.FamilyOf(ip)).Internal)
			}
		}
	}
	for protocol, v := range vips {
		balancer(s, protocol, v, out)
	}
}

// balancer is named as OVN-Kubernetes names it.
func balancer(s *world.Service, protocol string, vips map[string]string, out *plan.Rows) {
	name := "Service_" + s.Key() + "_" + strings.ToUpper(protocol) + "_cluster"
	out.AddNB(plan.RowID{Table: "Load_Balancer", Name: name}, plan.Group(plan.ServiceLBGroup), plan.Cols{
		"name": name, "protocol": protocol, "vips": vips,
		"options": map[string]string{
			"event": "false", "reject": "true", "skip_snat": "false",
			"neighbor_responder": "none", "hairpin_snat_ip": "169.254.169.5 fd69::5",
		},
		"external_ids": map[string]string{"k8s.ovn.org/kind": "Service", "k8s.ovn.org/owner": s.Key()},
	})
}

// backends are in order of address, as the column holds them.
func backends(all []world.Endpoint) string {
	var out []string
	for _, e := range all {
		out = append(out, e.String())
	}
	return strings.Join(out, ",")
}
