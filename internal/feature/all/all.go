// Package all is the one ordered list of features: adding one is a folder and a line here.
package all

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/feature/gateway"
	"github.com/egret-net/egret/internal/feature/liveness"
	"github.com/egret-net/egret/internal/feature/network"
	"github.com/egret-net/egret/internal/feature/pod"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/feature/zone"
)

// ServedKinds are all that Egret serves, in the order in which deciders decide.
func ServedKinds() feature.Kinds {
	return feature.Kinds{
		gateway.DescribeKind(), zone.DescribeKind(), liveness.DescribeKind(), pod.DescribeKind(),
		network.DescribeKind(),
		egressip.DescribeKind(), service.DescribeKind(), egressservice.DescribeKind(),
	}
}

// Features compile everything that a node holds.
func Features() []compile.Feature { return ServedKinds().AllFeatures() }
