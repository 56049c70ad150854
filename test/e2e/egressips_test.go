package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// egressIP is an EgressIP of a test.
type egressIP struct {
	t    *testing.T
	c    *cluster
	name string
}

// egressIP creates one; it goes when the test ends.
func (c *cluster) egressIP(t *testing.T, name string, ips []netip.Addr, namespaces,
	pods metav1.LabelSelector) egressIP {
	t.Helper()
	return c.egressIPOf(t, name, v1.EgressIPSpec{EgressIPs: texts(ips), NamespaceSelector: namespaces,
		PodSelector: pods})
}

// egressIPOf creates one of any spec.
func (c *cluster) egressIPOf(t *testing.T, name string, spec v1.EgressIPSpec) egressIP {
	t.Helper()
	e := egressIP{t, c, name}
	o := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if err := c.kube.EgressIP.Post().Resource("egressips").Body(o).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.delete)
	return e
}

func (e egressIP) delete() {
	err := e.c.kube.EgressIP.Delete().Resource("egressips").Name(e.name).Do(context.Background()).Error()
	if err != nil && !strings.Contains(err.Error(), "not found") {
		e.t.Error(err)
	}
}

// patch changes fields by a merge patch: controllers write the status meanwhile, so that an update may conflict.
func (e egressIP) patch(patch string) error {
	return e.c.kube.EgressIP.Patch(mergePatch).Resource("egressips").Name(e.name).Body([]byte(patch)).
		Do(e.t.Context()).Error()
}

// selects is a selector by labels.
func selects(labels map[string]string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: labels}
}

// selectsWhere is a selector by one expression.
func selectsWhere(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator,
		Values: values}}}
}

// itself selects this namespace alone.
func (n *namespace) itself() metav1.LabelSelector {
	return selects(map[string]string{"kubernetes.io/metadata.name": n.name})
}

func (e egressIP) get() (*v1.EgressIP, error) {
	o := &v1.EgressIP{}
	return o, e.c.kube.EgressIP.Get().Resource("egressips").Name(e.name).Do(context.Background()).Into(o)
}

// until waits for a condition, as of the object's present generation, and returns the object.
func (e egressIP) until(condition string, status metav1.ConditionStatus, reason string) *v1.EgressIP {
	e.t.Helper()
	var o *v1.EgressIP
	within(e.t, soon, func() (err error) {
		if o, err = e.get(); err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, condition)
		if c == nil || c.Status != status || reason != "" && c.Reason != reason ||
			c.ObservedGeneration != o.Generation {
			return fmt.Errorf("EgressIP %s: condition %s is %+v, want %s %s of generation %d; it has %v",
				e.name, condition, c, status, reason, o.Generation, e.c.eventsOf(o.UID))
		}
		return nil
	})
	return o
}

// ready waits until all addresses are held, and returns where.
func (e egressIP) ready() map[string]string {
	e.t.Helper()
	return nodesOf(e.until(v1.ConditionReady, metav1.ConditionTrue, v1.ReasonHeld))
}

// nodesOf are the nodes by address.
func nodesOf(o *v1.EgressIP) map[string]string {
	out := map[string]string{}
	for _, i := range o.Status.Items {
		out[i.EgressIP] = i.Node
	}
	return out
}

// readyOn waits until all addresses are held, by these nodes and no others.
func (e egressIP) readyOn(nodes ...sandbox.Member) {
	e.t.Helper()
	want := map[string]bool{}
	for _, n := range nodes {
		want[n.Name] = true
	}
	within(e.t, notReadyTimeout, func() error {
		o, err := e.get()
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, n := range nodesOf(o) {
			have[n] = true
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionReady)
		if fmt.Sprint(have) != fmt.Sprint(want) || c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("EgressIP %s: addresses on %v, want %v; Ready is %+v", e.name, have, want, c)
		}
		return nil
	})
}

// tells waits for an Event with this reason, and one of the texts in it.
func (e egressIP) tells(reason string, texts ...string) {
	e.t.Helper()
	o, err := e.get()
	if err != nil {
		e.t.Fatal(err)
	}
	within(e.t, soon, func() error {
		events := e.c.eventsOf(o.UID)
		said := func(s string) bool {
			in := func(text string) bool { return strings.Contains(s, text) }
			return strings.Contains(s, " "+reason+" ") && slices.ContainsFunc(texts, in)
		}
		if !slices.ContainsFunc(events, said) {
			return fmt.Errorf("EgressIP %s: no Event %s with one of %q among %q", e.name, reason, texts, events)
		}
		return nil
	})
}
