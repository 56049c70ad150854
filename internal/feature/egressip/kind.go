package egressip

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/kube"
)

// DescribeKind describes EgressIPs and the EgressIPTraffics that they select.
func DescribeKind() feature.Kind {
	return feature.Kind{
		Resources: []kube.Kind{kube.EgressIPs(), kube.EgressIPTraffics()},
		Features: []compile.Feature{Allow{}, NodeAddresses{}, APIServer{}, Destinations{}, Hosts{}, Yields{}, Pods{},
			Orphans{}, Networks{}},
		NewDeciders: func(pods *handover.Pods) []decide.Decider {
			return []decide.Decider{NewAssigner(pods), NewOverlapper(pods), NewSelector(),
				NewMarker(), NewLinkChecker(pods)}
		},
		Reads:   []feature.Read{{Resource: kube.EgressIPs()}, {Resource: kube.EgressIPTraffics()}},
		Awaited: Waiting,
	}
}
