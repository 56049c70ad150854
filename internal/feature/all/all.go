// Package all is the one ordered list of features: adding one is a folder and a line here.
package all

import (
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/feature/gateway"
	"github.com/egret-net/egret/internal/feature/liveness"
	"github.com/egret-net/egret/internal/feature/pod"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/feature/zone"
)

// Features compile everything that a node holds.
func Features() []compile.Feature {
	return []compile.Feature{
		gateway.Settings{}, gateway.Bridge{}, gateway.NetworkBridge{},
		gateway.Management{}, gateway.Router{}, gateway.Firewall{},
		zone.Own{}, zone.Remote{}, liveness.Sessions{},
		pod.Ports{}, pod.HostPorts{},
		service.Balancers{}, service.Bridge{}, service.Host{}, service.HostPorts{}, service.NodeHealth{},
		egressip.Allow{}, egressip.NodeAddresses{}, egressip.APIServer{}, egressip.Destinations{}, egressip.Hosts{},
		egressip.Yields{},
		egressip.Pods{}, egressip.Orphans{}, egressip.Networks{},
		egressservice.Hosts{}, egressservice.Pods{},
	}
}
