// Package pod compiles the logical switch ports of the pods that are attached to this node.
//
// In: attachments, as OVS holds them from CNI ADD to DEL. Out: one Logical_Switch_Port a pod, with port security, so that a
// pod cannot send with an address that is not its own.
package pod

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Ports is the feature.
type Ports struct{}

func (Ports) Name() string    { return "pod" }
func (Ports) Per() world.Kind { return world.KindAttachment }

// Compile adds the port of one pod.
func (Ports) Compile(w *world.View, key string, out *plan.Rows) {
	a := w.Attachment(key)
	if _, _, ok := w.Zone(); !ok || a == nil {
		return
	}
	address := a.MAC
	for _, ip := range a.IPs {
		address += " " + ip.String()
	}
	sw := plan.Switch(plan.DefaultNames().NodeSwitch(w.Self))
	out.AddNB(plan.RowID{Table: "Logical_Switch_Port", Name: a.LSP()}, sw, plan.Cols{
		"name": a.LSP(), "addresses": []string{address}, "port_security": []string{address},
		"options":      map[string]string{"requested-chassis": w.Self, "iface-id-ver": a.UID},
		"external_ids": map[string]string{"pod": "true", "namespace": a.Namespace},
	})
}
