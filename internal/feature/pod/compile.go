// Package pod compiles the logical switch ports of the pods that are attached to this node.
//
// In: attachments, as OVS holds them from CNI ADD to DEL. Out: one Logical_Switch_Port a pod, with port security, so
// that a pod cannot send with an address that is not its own.
package pod

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Ports is the feature.
type Ports struct{}

func (Ports) Name() string    { return "pod" }
func (Ports) Per() world.Kind { return world.KindAttachment }

// Compile adds the ports of one pod, one a network that it is in, and closes that in the default network where another
// one is the pod's own.
func (Ports) Compile(w *world.View, key string, out *plan.Rows) {
	a := w.Attachment(key)
	if a == nil {
		return
	}
	if text := refusePod(w, a.Namespace, a.Name); text != "" { // the node came later than the pod
		plan.Add(&out.Problems, plan.Problem{Object: ref.Object{Kind: ref.Node, Name: w.Self},
			Reason: world.ReasonPortName, Message: text}, plan.None{})
		return
	}
	for _, i := range a.Interfaces() {
		p := w.Part(i.Network)
		if p == nil {
			continue
		}
		var groups []plan.RowID
		if i.Network == ref.DefaultNetwork {
			groups = isolatePort(w, p, a, out)
		}
		addPort(plan.Names{Network: p.Name, ID: p.ID}, w.Self, a, i, groups, out)
	}
}

func addPort(
	names plan.Names, self string, a *world.Attachment, i world.Interface, groups []plan.RowID, out *plan.Rows,
) {
	address, name := i.MAC, names.PodPort(a.Namespace, a.Name)
	for _, ip := range i.IPs {
		address += " " + ip.String()
	}
	cols := plan.Cols{
		"name": name, "addresses": []string{address}, "port_security": []string{address},
		"options":      map[string]string{"requested-chassis": self, "iface-id-ver": a.UID},
		"external_ids": map[string]string{"pod": "true", "namespace": a.Namespace},
	}
	plan.Add(&out.NB, plan.RowID{Table: "Logical_Switch_Port", Name: name},
		plan.Row{Parent: plan.Switch(names.NodeSwitch(self)), Groups: groups, Cols: cols})
}
