package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressip"
)

// upstream are OVN-Kubernetes' metrics of the same things under their names
// (go-controller/pkg/metrics/cluster_manager.go), so that dashboards and alerts that know them go on.
type upstream struct {
	unreachable prometheus.Counter
	rebalanced  prometheus.Counter
}

func newUpstream() *upstream {
	return &upstream{
		unreachable: prometheus.NewCounter(prometheus.CounterOpts{Name: "ovnkube_clustermanager_egress_ips_node_unreachable_total", Help: "The total number of times assigned egress IP(s) were unreachable."}),
		rebalanced:  prometheus.NewCounter(prometheus.CounterOpts{Name: "ovnkube_clustermanager_egress_ips_rebalance_total", Help: "The total number of times assigned egress IP(s) needed to be moved to a different node."}),
	}
}

// countMove counts an egress IP that left a node.
func (u *upstream) countMove(e decide.Event) {
	if e.Reason == egressip.EventMoved {
		u.rebalanced.Inc()
	}
	if e.Cause == handover.CauseNotReady || e.Cause == handover.CauseUnreachable {
		u.unreachable.Inc()
	}
}
