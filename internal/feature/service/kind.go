package service

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/kube"
)

// DescribeKind describes Services with their EndpointSlices.
func DescribeKind() feature.Kind {
	return feature.Kind{
		Resources:   []kube.Kind{kube.Services(), kube.EndpointSlices()},
		Features:    []compile.Feature{Balancers{}, Bridge{}, Host{}, HostPorts{}, NodeHealth{}},
		NewDeciders: func(*handover.Pods) []decide.Decider { return []decide.Decider{NewRefuser()} },
	}
}
