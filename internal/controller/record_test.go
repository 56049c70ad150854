package controller_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// edit changes a node as somebody else than the controller does.
func (a *api) edit(name string, change func(*corev1.Node)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.nodes[name].DeepCopy()
	change(n)
	a.showNode(n)
}

// list shows nodes once more in an order, as the first list of a program has them.
func (a *api) list(names ...string) {
	for _, name := range names {
		a.edit(name, func(*corev1.Node) {})
	}
}

// leads starts a controller that leads until stop.
func (a *api) leads(t *testing.T) (stop func()) {
	ctx, stop := context.WithCancel(t.Context())
	c := controller.New(config(), all.ServedKinds(), a, a, controller.NewMetrics(),
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	go c.Run(ctx)
	c.Lead(ctx)
	return stop
}

func (a *api) record(node string) func() string {
	return func() string { return a.annotation(node, v1.AnnotationRecordedAddresses) }
}

const (
	recordOf2 = `{"addresses":["172.18.0.2"],"mac-address":"02:00:00:00:00:02"}`
	recordOf3 = `{"addresses":["172.18.0.3"],"mac-address":"02:00:00:00:00:03"}`
	recordOf9 = `{"addresses":["172.18.0.9"],"mac-address":"02:00:00:00:00:02"}`
)

// withMAC is aNode with a hardware address.
func withMAC(name string, host int, mac string) *corev1.Node {
	n := aNode(name, host)
	n.Annotations[v1.AnnotationL3GatewayConfig] = `{"default":{"mac-address":"` + mac + `"}}`
	return n
}

func twoRecorded(t *testing.T) (a *api, stop func()) {
	a = newAPI(0)
	a.putNode(withMAC("old", 2, "02:00:00:00:00:02"))
	a.putNode(withMAC("young", 3, "02:00:00:00:00:03"))
	go a.run(t.Context())
	stop = a.leads(t)
	eventually(t, "old", recordOf2, a.record("old"))
	eventually(t, "young", recordOf3, a.record("young"))
	return a, stop
}

// TestOwnersOutliveControllers: an older node that names a younger one's addresses gets them neither now nor from the
// next controller, which learns of it first, nor from an agent that starts then. Nothing more is written of the younger
// one.
func TestOwnersOutliveControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, stop := twoRecorded(t)
		a.edit("old", func(n *corev1.Node) {
			n.Annotations[v1.AnnotationNodePrimaryIfaddr] = `{"ipv4":"172.18.0.3/16"}`
			n.Annotations[v1.AnnotationL3GatewayConfig] = `{"default":{"mac-address":"02:00:00:00:00:03"}}`
		})
		eventually(t, "events", "NodeAllocation", func() string { return a.reasons("old") })
		stop()
		time.Sleep(20 * time.Millisecond)
		writes := a.written("nodes/young")
		a.list("old", "young")
		defer a.leads(t)()
		a.putNode(aNode("another", 4))
		eventually(t, "the next leader", "4", func() string { return a.annotation("another", v1.AnnotationNodeID) })
		if o, y := a.record("old")(), a.record("young")(); o != recordOf2 || y != recordOf3 ||
			a.written("nodes/young") != writes {
			t.Errorf("old: %s, young: %s, %d writes after %d", o, y, a.written("nodes/young"), writes)
		}
		w := world.New("another", config())
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, name := range []string{"old", "young"} {
			w.SetNode(kube.Node(a.nodes[name]))
		}
		if o, y := w.Node("old"), w.Node("young"); len(o.Primary) != 0 || o.UplinkMAC.IsValid() ||
			len(y.Primary) != 1 || !y.UplinkMAC.IsValid() {
			t.Errorf("an agent that starts: old %+v, young %+v", o, y)
		}
	})
}

// TestRecordFollowsAnAddress: a node that has another address is recorded with it, in one write; a deleted Node frees
// its own.
func TestRecordFollowsAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, stop := twoRecorded(t)
		defer stop()
		writes := a.written("nodes/old")
		a.edit("old", func(n *corev1.Node) { n.Annotations[v1.AnnotationNodePrimaryIfaddr] = `{"ipv4":"172.18.0.9/16"}` })
		eventually(t, "moved", recordOf9, a.record("old"))
		a.putNode(withMAC("again", 3, "02:00:00:00:00:03"))
		eventually(t, "events", "NodeAllocation", func() string { return a.reasons("again") })
		if a.record("again")() != "" || a.written("nodes/old") != writes+1 {
			t.Errorf("recorded %q; %d writes of old after %d", a.record("again")(), a.written("nodes/old"), writes)
		}
		a.deleteNode("young")
		eventually(t, "its Node is deleted", recordOf3, a.record("again"))
		eventually(t, "problem", "", func() string { return a.annotation("again", v1.AnnotationAllocationProblem) })
	})
}

// TestServicesKeepTheirAddresses: a Service does not get an address of spec.externalIPs that a node is recorded with,
// or names. A node is not recorded with an address that a Service asks for.
func TestServicesKeepTheirAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, stop := twoRecorded(t)
		defer stop()
		a.putService(aService("web", 1, "10.96.0.30", "172.18.0.2", "172.18.0.200"))
		of := func(node, address string) string {
			return address + " is an address of node " + node + ", and stays that: use a node port, or another " +
				"address, or have an administrator annotate the node with " + v1.AnnotationExternalIPs + "=true"
		}
		ofNode := v1.ConditionRefused + "=True " + v1.ReasonRefused + ": " + of("old", "172.18.0.2")
		eventually(t, "a node's", ofNode, func() string { return a.refused("web") })
		a.edit("young", func(n *corev1.Node) {
			n.Annotations[v1.AnnotationNodePrimaryIfaddr] = `{"ipv4":"172.18.0.200/16"}`
		})
		eventually(t, "events", "NodeAllocation", func() string { return a.reasons("young") })
		ofBoth := ofNode + "; " + of("young", "172.18.0.200")
		eventually(t, "both nodes'", ofBoth, func() string { return a.refused("web") })
		if r := a.record("young")(); r != recordOf3 {
			t.Errorf("recorded %s", r)
		}
		a.putService(aService("web", 1, "10.96.0.30"))
		eventually(t, "no Service's", `{"addresses":["172.18.0.200"],"mac-address":"02:00:00:00:00:03"}`,
			a.record("young"))
	})
}

// TestRecordIsWrittenLast: a record that the API server refuses keeps nothing else from being written.
func TestRecordIsWrittenLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.refuse = v1.AnnotationRecordedAddresses
		a.putNode(aNode("n1", 2))
		go a.run(t.Context())
		defer a.leads(t)()
		eventually(t, "id", "2", func() string { return a.annotation("n1", v1.AnnotationNodeID) })
		a.edit("n1", func(n *corev1.Node) { delete(n.Annotations, v1.AnnotationNodeID) })
		eventually(t, "id again", "2", func() string { return a.annotation("n1", v1.AnnotationNodeID) })
	})
}
