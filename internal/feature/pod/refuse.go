package pod

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// refusePod returns why a pod cannot start, and what to do; "": it can. A port with the name of one of a node's ports
// would take that one's place, and with it the traffic of others.
func refusePod(w *world.View, namespace, pod string) string {
	for _, node := range plan.NodesOfPort(w.Config.Bridge, namespace, pod) {
		if w.Node(node) != nil {
			return fmt.Sprintf("pod %s/%s: its port in OVN, %s, can have the name of a port or conntrack zone of node "+
				"%s. Create the pod with another name: not snat or dnat, and without the node's name in it", namespace,
				pod, plan.DefaultNames().PodPort(namespace, pod), node)
		}
	}
	return ""
}
