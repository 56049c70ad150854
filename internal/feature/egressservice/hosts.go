package egressservice

import (
	"fmt"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Hosts is what a host has for an EgressService, whoever its pods are.
type Hosts struct{}

func (Hosts) Name() string    { return "egressservice" }
func (Hosts) Per() world.Kind { return world.KindEgressService }

// Compile adds the rules of the host's kernel where this node is the host, or leaves off to be.
func (Hosts) Compile(w *world.View, key string, out *plan.Rows) {
	n, h, ok := w.Zone()
	s := w.EgressService(key)
	if !ok || s == nil {
		return
	}
	by := networkOf(w, s)
	if s.Host == w.Self {
		by.reportProblems(w, s, out)
	}
	for _, f := range w.Config.Families() {
		k := kernel{Host: egress.Host{Family: f, Out: out}, w: w, s: s, by: by}
		all, duties := s.Host == world.HostAll && w.EgressServiceActive(key, f), holder.Duties(w, key, f)
		if all {
			k.addMarkRules()
			k.addRouteRules()
			k.addReplyMarks()
			k.dropPodSources()
			continue
		}
		for _, d := range duties {
			egress.ToHost(n, f, remotePods(s, f), plan.PriorityEgressService, "", out)
			k.source = d.IP
			k.addMarkRules()
			k.addRouteRules()
			k.addReplyMarks()
			k.addTranslation()
			egress.Forward(w, egressOf(s, d.IP), h.UplinkMAC, out)
			plan.Add(&out.Translated, egressOf(s, d.IP), s.Since(world.Assignment{Node: w.Self, IP: d.IP}))
		}
	}
}

// addTranslation gives what pods begin the address, and drops what has another source all the same: a connection keeps
// the source that it began with.
func (k kernel) addTranslation() {
	c := k.addChain(chainTranslate, plan.NFTChainSpec{Type: "nat", Hook: "postrouting", Priority: "98"})
	dev := plan.DefaultNames().ManagementPort()
	k.AddRule(c, k.rowName(), "oifname != %q meta mark %#x %s saddr @%s snat %s to %s", dev, k.by.mark, k.IP(),
		k.podSet(), k.IP(), k.source)
	guard := k.addChain(LeakChain, plan.NFTChainSpec{Type: "filter", Hook: "postrouting", Priority: "102"})
	k.AddRule(guard, k.rowName(), "oifname != %q ct direction original meta mark %#x ct original %s saddr @%s "+
		"%s saddr != %s counter drop", dev, k.by.mark, k.IP(), k.podSet(), k.IP(), k.source)
}

// dropPodSources drops what would leave through the network with a pod's own address: packets of other nodes' pods,
// which are led here as long as their nodes know of a host. The sets have those of them until old rows are removed. The
// rules are a table's, as those that route are: no name in them has to fit beside the subnet.
func (k kernel) dropPodSources() {
	guard := k.addChain(LeakChain, plan.NFTChainSpec{Type: "filter", Hook: "postrouting", Priority: "102"})
	for _, p := range k.w.Config.Cluster(k.Family) {
		k.AddRule(guard, fmt.Sprintf("untranslated %#x %s", k.by.mark, p), "oifname != %q ct direction original "+
			"meta mark %#x %s saddr %s counter drop", plan.DefaultNames().ManagementPort(), k.by.mark, k.IP(), p)
	}
}
