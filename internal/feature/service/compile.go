// Package service compiles Services: load balancers of OVN, and what the uplink's bridge does with connections to them
// from outside.
//
// In: Services with all their endpoints, and facts of this node. Out: Load_Balancer rows in two groups, one that the
// node switch refers to and one that the gateway router does, and one flow an address and port. endpoints.go says which
// endpoints count, claims.go which Service has an address; both are pure, and every plane takes its answers from there.
// Services of namespaces with a network of their own have load balancers there (network.go).
package service

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Balancers is the feature that makes OVN's load balancers.
type Balancers struct{}

func (Balancers) Name() string    { return "service" }
func (Balancers) Per() world.Kind { return world.KindService }

// Compile adds the load balancers of one Service.
func (Balancers) Compile(w *world.View, key string, out *plan.Rows) {
	s := w.Service(key)
	_, h, ok := w.Zone()
	if !ok || s == nil {
		return
	}
	if !isInDefaultNetwork(w, s) {
		compileInNetwork(w, s, out)
		return
	}
	rows := balancers{}
	for _, p := range s.Ports {
		for _, f := range w.Config.Families() {
			onSwitch(w, s, p, f, h, rows)
			for _, ip := range f.OfAddrs(External(w, s, p)) {
				refusePods(w, s, p, f, ip, plan.Switch(plan.DefaultNames().NodeSwitch(w.Self)), out)
			}
			if !byHost(w, s) {
				onGateway(w, s, p, f, h, rows)
			}
			byLocalOnly(w, s, p, f, rows)
		}
	}
	rows.writeRows(w.Config, plan.DefaultNames(), w.Self, s, out)
}

// onSwitch is what pods of this node meet, and what the host sends in by its management port: in-cluster clients are
// served by all endpoints whatever the external traffic policy is.
func onSwitch(w *world.View, s *world.Service, p world.ServicePort, f world.Family, h *world.Host, rows balancers) {
	b := BackendsOf(w, s, p, f)
	internal := scopeCluster
	if s.InternalLocal {
		internal = scopeSwitch
	}
	for _, ip := range f.OfAddrs(s.ClusterIPs) {
		if Gets(w, s, world.Frontend{IP: ip, Protocol: p.Protocol, Port: p.Port}) {
			rows.addVIP(internal, p.Protocol, ip, p.Port, b.Internal)
		}
	}
	for _, ip := range f.OfAddrs(External(w, s, p)) {
		rows.addVIP(scopeCluster, p.Protocol, ip, p.Port, b.Cluster)
	}
	if !HasNodePort(w, s, p) {
		return
	}
	for _, ip := range f.OfAddrs(h.Addrs) {
		rows.addVIP(scopeSwitch, p.Protocol, ip, p.NodePort, b.Cluster)
	}
}

// byLocalOnly is what the host sends in with the client's address, see toOwnPods.
func byLocalOnly(w *world.View, s *world.Service, p world.ServicePort, f world.Family, rows balancers) {
	if !s.ExternalLocal || !HasNodePort(w, s, p) {
		return
	}
	scope := scopeLocalRouter
	if w.Config.GatewayMode == world.LocalGateway {
		scope = scopeSwitch
	}
	rows.addVIP(scope, p.Protocol, w.Config.LocalOnly(f), p.NodePort, BackendsOf(w, s, p, f).LocalPods)
}

// onGateway is what comes in by the uplink in shared gateway mode. Ports that this host itself listens at are not
// behind the gateway router, which has the host's address: the bridge gives their packets to the host. A reject must
// not be translated (OVN 25.03 gives it the router's address, whatever the client asked), so that what has no endpoint
// is with what keeps sources.
func onGateway(w *world.View, s *world.Service, p world.ServicePort, f world.Family, h *world.Host, rows balancers) {
	to, scope := FromOutside(w, s, p, f), scopeRouter
	if s.ExternalLocal || len(to.Gateway) == 0 {
		scope = scopeLocalRouter
	}
	for _, ip := range f.OfAddrs(External(w, s, p)) {
		rows.addVIP(scope, p.Protocol, ip, p.Port, to.Gateway)
	}
	if !HasNodePort(w, s, p) {
		return
	}
	for _, ip := range f.OfAddrs(h.Addrs) {
		rows.addVIP(scope, p.Protocol, ip, p.NodePort, to.Gateway)
	}
}

// HasNodePort says whether a Service gets the node port that one of its ports asks for.
func HasNodePort(w *world.View, s *world.Service, p world.ServicePort) bool {
	return p.NodePort != 0 && Gets(w, s, world.Frontend{Protocol: p.Protocol, Port: p.NodePort})
}

// Inbound is how new connections from outside are shared between this host's own endpoints and those behind the gateway
// router.
type Inbound struct{ Host, Gateway []world.Endpoint }

// FromOutside are the endpoints of one family that connections from outside to a port of a Service go to, in shared
// gateway mode.
func FromOutside(w *world.View, s *world.Service, p world.ServicePort, f world.Family) Inbound {
	b := BackendsOf(w, s, p, f)
	if s.ExternalLocal {
		return Inbound{Host: b.LocalHost, Gateway: b.LocalPods}
	}
	var in Inbound
	for _, e := range b.Cluster {
		if OnOwnHost(w, e.Addr()) {
			in.Host = append(in.Host, e)
		} else {
			in.Gateway = append(in.Gateway, e)
		}
	}
	return in
}
