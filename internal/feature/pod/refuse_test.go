package pod_test

import (
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestPodsNamedAsPorts: a pod whose port could have the name of a node's port does not start. If the node comes later,
// the pod's port gives way, and the pod's own node says so.
func TestPodsNamedAsPorts(t *testing.T) {
	for pod, taken := range map[string]bool{
		"blue/tstor-n2": true, "blue/rtots-n2": true, "breth0/n1": true, "stor-blue/n1": true, "rtos-blue/n1": true,
		"rtol-blue/n1": true, "ltor-blue/n1": true, "k8s-blue/n1": true,
		"n1/snat": true, "n2/dnat": true, "n4/snat": false, "blue/dnat": false,
		"blue/tstor-n4": false, "breth0/n4": false, "breth0/web": false, "blue/n1": false, "eth0/n1": false,
	} {
		w := compiletest.Small("n1", world.SharedGateway)
		a := compiletest.Attachment(compiletest.Pod(1, "n1"))
		a.Namespace, a.Name, _ = strings.Cut(pod, "/")
		w.SetAttachment(a)
		text := all.ServedKinds().RefusePod(&w.View, a.Namespace, a.Name)
		if taken != strings.Contains(text, "pod "+pod+": its port in OVN") {
			t.Errorf("pod %s is refused: %q", pod, text)
		}
		s := compile.Full(w, all.Features())
		id := plan.RowID{Table: "Logical_Switch_Port", Name: a.Namespace + "_" + a.Name}
		if taken == (s.NB.Owner(id).Feature == "pod") {
			t.Errorf("pod %s has port %s: %t", pod, id.Name, !taken)
		}
		if said := strings.Contains(s.Text(), "problem of Node/n1 PortName: "+text); taken != said {
			t.Errorf("pod %s is a problem: %t", pod, said)
		}
	}
}
