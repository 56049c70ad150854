package pod

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/kube"
)

// DescribeKind describes the namespaces with their pods' ports.
func DescribeKind() feature.Kind {
	return feature.Kind{
		Resources: []kube.Kind{kube.Namespaces()},
		Features:  []compile.Feature{Ports{}, HostPorts{}},
		Refuse:    refusePod,
	}
}
