package featuretest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

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
	source *kube.Source
	memo   *compile.Memo
	before *plan.State // before the last change
}

func newView(node string, c *world.Config) *view {
	v := &view{world: all.ServedKinds().NewWorld(node, c), source: newSource(), memo: compile.NewMemo(all.Features()),
		before: plan.New()}
	v.memo.Update(v.world)
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

// takeObject brings one object into the world, or out of it where it is gone.
func (v *view) takeObject(o object, gone bool) {
	takeInto(v.world, v.source, o, gone)
	switch x := o.(type) {
	case *corev1.Node:
		setHost(v.world, x)
	case *corev1.Pod:
		attachPod(v.world, kube.Pod(x), gone)
	}
	v.memo.Update(v.world)
}

// newSource follows objects of all kinds, without an API server.
func newSource() *kube.Source {
	return kube.NewSource(nil, slog.New(slog.DiscardHandler), kube.Followed(all.ServedKinds().AllResources()...)...)
}

// takeInto brings what a source makes of an object into a world.
func takeInto(w *world.World, s *kube.Source, o object, gone bool) {
	take := s.StoreOf(o).Update
	if gone {
		take = s.StoreOf(o).Delete
	}
	if err := take(o); err != nil {
		panic(err) // an object of the API has metadata
	}
	for len(s.Changes()) > 0 {
		(<-s.Changes())(w)
	}
}

// hostIface is every pod's: there is no kernel here that would mind.
const hostIface = "veth"

// setHost takes the host's facts of the node itself from what its agent would publish of them.
func setHost(w *world.World, o *corev1.Node) {
	n := kube.Node(o)
	if n.Name != w.Self || len(n.Primary) == 0 {
		return
	}
	var gateway map[string]struct {
		MAC string `json:"mac-address"`
	}
	if json.Unmarshal([]byte(o.Annotations[v1.AnnotationL3GatewayConfig]), &gateway) != nil {
		return
	}
	w.SetHost(&world.Host{
		UplinkMAC: gateway["default"].MAC, MTU: 1500, Primary: n.Primary, Addrs: n.HostAddrs, Gateways: n.Gateways,
		Links: secondaryLinks(n), Tables: labelledTables(n),
	})
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

// attachPod attaches the pod where it is its own node's and has addresses.
func attachPod(w *world.World, p *world.Pod, gone bool) {
	if gone || p.Node != w.Self || p.HostNetwork || len(p.IPs) == 0 {
		w.DelAttachment(p.Key(), hostIface)
		return
	}
	w.SetAttachment(&world.Attachment{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, HostIface: hostIface, MAC: world.MAC(p.IPs[0]), IPs: p.IPs,
		Further: p.Further,
	})
}
