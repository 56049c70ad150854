package zone

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/kube"
)

// DescribeKind describes Nodes, each with a part of the pod network.
func DescribeKind() feature.Kind {
	return feature.Kind{
		Resources:   []kube.Kind{kube.Nodes()},
		Features:    []compile.Feature{Own{}, Remote{}},
		NewDeciders: func(*handover.Pods) []decide.Decider { return []decide.Decider{NewAllocator()} },
	}
}
