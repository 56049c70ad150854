package egressservice

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// DescribeKind describes EgressServices. The Service of an EgressService, and its EndpointSlices, say which pods it is
// for.
func DescribeKind() feature.Kind {
	return feature.Kind{
		Resources:   []kube.Kind{kube.EgressServices()},
		Features:    []compile.Feature{Hosts{}, Pods{}},
		NewDeciders: func(pods *handover.Pods) []decide.Decider { return []decide.Decider{NewDecider(pods)} },
		Reads: []feature.Read{
			{Resource: kube.EgressServices(), InNamespace: true},
			{Resource: kube.Services(), InNamespace: true, If: hasEgressService},
			{Resource: kube.EndpointSlices(), InNamespace: true, If: hasEgressService},
		},
		Awaited: Waiting,
	}
}

func hasEgressService(w *world.World, namespace string) bool { return w.EgressServiceIn(namespace) }
