package compile_test

import (
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/pod"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestPodsTakeNoPort: whatever pods, namespaces, networks and the bridge are called, no pod's port has the name of
// another port of the node, or of a conntrack zone of a router or node's switch, and no other row gives way to a pod's.
func TestPodsTakeNoPort(t *testing.T) {
	networks := []string{"blue", "a", "a_b", "a-b", "cluster_udn", "cluster_udn_blue", "br", "br_eth0", "rtos-blue"}
	namespaces := strings.Fields("blue a b a-b breth0 eth0 br-ex stor-blue rtos-blue rtol-blue ltor-blue rtos-a k8s n1")
	pods := strings.Fields("n1 n2 n4 web tstor-n2 rtots-n1 tstor-n4 snat dnat")
	started := 0
	for _, bridge := range []string{"breth0", "br_eth0", "br-ex"} {
		w := compiletest.Small("n1", world.SharedGateway)
		w.Config.Bridge = bridge
		a := compiletest.Attachment(compiletest.Pod(1, "n1"))
		join(w, a, networks...)
		w.DelAttachment(a.Key(), a.HostIface)
		others, ports := compile.Full(w, all.Features()), map[string]bool{}
		for id := range others.NB.Rows() {
			ports[id.Name] = ports[id.Name] || isPort(id)
			if id.Table == "Logical_Router" || id.Table == "Logical_Switch" {
				ports[id.Name+"_snat"], ports[id.Name+"_dnat"] = true, true
			}
		}
		for _, a.Namespace = range namespaces {
			for _, a.Name = range pods {
				join(w, a, networks...)
				for id := range compile.Full(w, []compile.Feature{pod.Ports{}}).NB.Rows() {
					if _, both := others.NB.Get(id); both || isPort(id) && ports[id.Name] {
						t.Errorf("bridge %s: pod %s has %s, as others have", bridge, a.Key(), id)
					}
					if isPort(id) {
						started++
					}
				}
				w.DelAttachment(a.Key(), a.HostIface)
			}
		}
	}
	if started < 1000 {
		t.Errorf("of all pods' ports there are %d: most pods have a harmless name", started)
	}
}

func isPort(id plan.RowID) bool {
	return id.Table == "Logical_Switch_Port" || id.Table == "Logical_Router_Port"
}
