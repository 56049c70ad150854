package featuretest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// view is the cluster as one node's agent has it.
type view struct {
	world  *world.World
	memo   *compile.Memo
	before *plan.State // before the last change
}

func newView(node string, c *world.Config) *view {
	v := &view{world: world.New(node, c), memo: compile.NewMemo(all.Features()), before: plan.New()}
	v.memo.Update(v.world, nil)
	return v
}

// compilePlan is the node's, compiled wholly; the memo must say the same.
func (v *view) compilePlan() (*plan.State, error) {
	full := compile.Full(v.world, all.Features())
	if full.Text() != v.memo.State.Text() {
		return nil, fmt.Errorf("the memo of %s differs from the full compile:\n%s", v.world.Self,
			plan.DiffText(full, v.memo.State))
	}
	return full, nil
}

// takeObject brings one object into the world, or out of it where it is nil.
func (v *view) takeObject(i id, o object, all map[id]object) {
	v.memo.Update(v.world, applyObject(v.world, i, o, all))
}

func applyObject(w *world.World, i id, o object, all map[id]object) []world.Touch {
	if o == nil {
		return deleteFromWorld(w, i, all)
	}
	switch x := o.(type) {
	case *corev1.Node:
		return setNode(w, x)
	case *corev1.Namespace:
		return w.SetNamespace(kube.Namespace(x))
	case *corev1.Pod:
		return setPod(w, x)
	case *v1.EgressIP:
		return w.SetEgressIP(kube.EgressIP(x))
	case *v1.EgressIPTraffic:
		return w.SetTraffic(kube.Traffic(x))
	case *v1.EgressService:
		return w.SetEgressService(kube.EgressService(x))
	case *egretv1.EgressNode:
		return w.SetHolding(kube.Holding(x))
	case *discoveryv1.EndpointSlice:
		return setService(w, x.Namespace+"/"+x.Labels[discoveryv1.LabelServiceName], all)
	}
	return setService(w, i.key, all)
}

func deleteFromWorld(w *world.World, i id, all map[id]object) []world.Touch {
	switch i.kind {
	case "Node":
		return w.DelNode(i.key)
	case "Namespace":
		return w.DelNamespace(i.key)
	case "Pod":
		return append(w.DelPod(i.key), w.DelAttachment(i.key, hostIface)...)
	case "EgressIP":
		return w.DelEgressIP(i.key)
	case "EgressIPTraffic":
		return w.DelTraffic(i.key)
	case "EgressService":
		return w.DelEgressService(i.key)
	case "EgressNode":
		return w.DelHolding(i.key)
	}
	var t []world.Touch
	for _, key := range w.Services() {
		t = append(t, setService(w, key, all)...)
	}
	return t
}

// hostIface is every pod's: there is no kernel here that would mind.
const hostIface = "veth"

// setNode takes the host's facts of the node itself from what its agent would publish of them.
func setNode(w *world.World, o *corev1.Node) []world.Touch {
	n := kube.Node(o)
	t := w.SetNode(n)
	if n.Name != w.Self || len(n.Primary) == 0 {
		return t
	}
	var gateway map[string]struct {
		MAC string `json:"mac-address"`
	}
	if json.Unmarshal([]byte(o.Annotations[v1.AnnotationL3GatewayConfig]), &gateway) != nil {
		return t
	}
	return append(t, w.SetHost(&world.Host{
		UplinkMAC: gateway["default"].MAC, MTU: 1500, Primary: n.Primary, Addrs: n.HostAddrs, Gateways: n.Gateways,
		Links: secondaryLinks(n), Tables: labelledTables(n),
	})...)
}

// labelledTables are those that label table names: blue, which is number 100, bare, the same without routes, closed,
// the same with a default route of type unreachable alone, or red, which is number 200 and a VRF's.
func labelledTables(n *world.Node) []world.HostTable {
	both := [2]bool{true, true}
	blue := world.HostTable{ID: 100, Names: []string{"blue"}}
	switch n.Labels["table"] {
	case "blue":
		blue.Routes, blue.Default = both, both
	case "bare":
	case "closed":
		blue.Refuses = both
	case "red":
		return []world.HostTable{{ID: 200, Names: []string{"red"}, Routes: both, Default: both, VRF: true}}
	default:
		return nil
	}
	return []world.HostTable{blue}
}

// lookUp leads outside by the tables that have a default route.
func lookUp(tables []world.HostTable) trace.Lookup {
	return func(table int, to netip.Addr) (dev string, ok bool) {
		for _, t := range tables {
			if f := world.FamilyOf(to); t.ID == uint32(table) && (t.Default[f] || t.Refuses[f]) {
				if t.Default[f] {
					dev = fmt.Sprint("table ", table)
				}
				return dev, true
			}
		}
		return "", false
	}
}

// secondaryLinks is one, eth1, with all published addresses that are not the primary network's.
func secondaryLinks(n *world.Node) []world.Link {
	l := world.Link{Name: "eth1", Index: 3, MAC: "02:00:00:00:01:00"}
	for _, p := range n.CIDRs {
		if !slices.Contains(n.Primary, p) {
			l.Addrs = append(l.Addrs, p)
			l.Routes = append(l.Routes, world.LinkRoute{Dst: p.Masked()})
		}
	}
	if len(l.Addrs) == 0 {
		return nil
	}
	return []world.Link{l}
}

// setPod attaches the pod where it is its own node's and has addresses.
func setPod(w *world.World, o *corev1.Pod) []world.Touch {
	p := kube.Pod(o)
	t := w.SetPod(p)
	if p.Node != w.Self || p.HostNetwork || len(p.IPs) == 0 {
		return append(t, w.DelAttachment(p.Key(), hostIface)...)
	}
	return append(t, w.SetAttachment(&world.Attachment{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, HostIface: hostIface, MAC: world.MAC(p.IPs[0]), IPs: p.IPs,
	})...)
}

// setService joins a Service with its slices.
func setService(w *world.World, key string, all map[id]object) []world.Touch {
	o, ok := all[id{"Service", key}].(*corev1.Service)
	if !ok {
		return w.DelService(key)
	}
	var slices []*discoveryv1.EndpointSlice
	for _, other := range all {
		if s, is := other.(*discoveryv1.EndpointSlice); is && s.Namespace == o.Namespace &&
			s.Labels[discoveryv1.LabelServiceName] == o.Name {
			slices = append(slices, s)
		}
	}
	if s := kube.Service(o, slices); s != nil {
		return w.SetService(s)
	}
	return w.DelService(key)
}
