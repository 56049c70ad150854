package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// TestFallback: when no node can host, selected pods leave with their node's address, or not at all where the
// annotation asks for that. The choice is a condition.
func TestFallback(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]}, pod{name: "b", node: c.nodes[1]})
	pods := []string{"a", "b"}
	e := c.egressIP(t, "fallback", c.number(52), n.itself(), metav1.LabelSelector{})
	e.ready()
	e.until(v1.ConditionFallback, metav1.ConditionFalse, v1.ReasonHosted)
	for _, p := range pods {
		n.from(p).to(c.outside(0)).soonArrivesAs(c.number(52)...)
	}

	c.unlabelEgress(t, c.nodes[1])
	e.until(v1.ConditionFallback, metav1.ConditionTrue, v1.ReasonNodeIP)
	e.tells(v1.EventFallback, "their node's address")
	for i, p := range pods {
		n.from(p).to(c.outside(0)).formerly(c.number(52)...).soonArrivesAs(c.nodes[i].IPs...)
	}

	whenUnassigned := func(value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1.AnnotationWhenUnassigned, value)
	}
	if err := e.patch(whenUnassigned("dorp")); err == nil || !strings.Contains(err.Error(), `when-unassigned is "drop"`) {
		t.Errorf("a value that says nothing: %v, want a refusal", err)
	}
	e.annotate(whenUnassigned("Drop"))
	e.until(v1.ConditionFallback, metav1.ConditionTrue, v1.ReasonDrop)
	e.tells(v1.EventFallback, "dropped")
	for i, p := range pods {
		n.from(p).to(c.outside(0)).soonReachesNothing()
		n.from(p).to(n.pod(pods[1-i])).arrivesAs(n.ips[p]...)
	}

	c.labelEgress(t, c.nodes[2])
	e.until(v1.ConditionFallback, metav1.ConditionFalse, v1.ReasonHosted)
	for _, p := range pods {
		n.from(p).to(c.outside(0)).soonArrivesAs(c.number(52)...)
	}
}

// TestFallbackOfANodeThatStandsStill: where ovn-northd stands still, pods go on leaving with their node's address,
// though the annotation asks for a drop (in gateway mode local the host's own rules drop them, without OVN). Condition
// Fallback does not say Drop as long as that is so, and names the node; the other node's pods send nothing. When
// ovn-northd goes on, all is dropped, and the condition says so.
func TestFallbackOfANodeThatStandsStill(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]}, pod{name: "b", node: c.nodes[1]})
	e := c.egressIP(t, "fallback", c.number(52), n.itself(), metav1.LabelSelector{})
	e.ready()
	c.unlabelEgress(t, c.nodes[1])
	e.until(v1.ConditionFallback, metav1.ConditionTrue, v1.ReasonNodeIP)
	n.from("a").to(c.outside(0)).formerly(c.number(52)...).soonArrivesAs(c.nodes[0].IPs...)

	still := c.nodes[0].Name
	signal := func(s syscall.Signal) {
		if err := c.SignalProcess(context.WithoutCancel(t.Context()), still, "ovn-northd", s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	signal(syscall.SIGSTOP)
	e.annotate(fmt.Sprintf(`{"metadata":{"annotations":{%q:"drop"}}}`, v1.AnnotationWhenUnassigned))
	n.from("b").to(c.outside(0)).soonReachesNothing()
	waits := func() error {
		o, err := e.get()
		if err != nil {
			return err
		}
		f := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionFallback)
		if f == nil || f.Reason != v1.ReasonWaitingForNode || !strings.Contains(f.Message, "not confirmed by "+still) ||
			strings.Contains(f.Message, c.nodes[1].Name) {
			return fmt.Errorf("%s is %+v, want that it waits for %s alone", v1.ConditionFallback, f, still)
		}
		return nil
	}
	within(t, soon, waits)
	if c.Options().GatewayMode == sandbox.Shared {
		n.from("a").to(c.outside(0)).arrivesAs(c.nodes[0].IPs...)
	} else {
		n.from("a").to(c.outside(0)).soonReachesNothing()
	}
	if err := waits(); err != nil {
		t.Errorf("its ovn-northd stands still: %v", err)
	}
	signal(syscall.SIGCONT)
	e.until(v1.ConditionFallback, metav1.ConditionTrue, v1.ReasonDrop)
	n.from("a").to(c.outside(0)).soonReachesNothing()
}

func (e egressIP) annotate(patch string) {
	e.t.Helper()
	if err := e.patch(patch); err != nil {
		e.t.Fatal(err)
	}
}

// soonReachesNothing says that no connection comes through any more, to any address there.
func (f fromTo) soonReachesNothing() {
	f.t.Helper()
	within(f.t, soon, func() error {
		var all errgroup.Group
		for _, ip := range f.to.ips {
			one := f
			one.to.ips = []netip.Addr{ip}
			all.Go(one.reachesNothing)
		}
		return all.Wait()
	})
}

// reachesNothing is nil if a connection ends without an answer, for a reason that packets have.
func (f fromTo) reachesNothing() error {
	seen, err := f.sources(1)
	if err == nil {
		return fmt.Errorf("%s to %s arrives as %v, want nothing to arrive", f.from.from.name, f.to.ips, seen)
	}
	var of net.Error
	if errors.As(err, &of) && of.Timeout() || slices.ContainsFunc([]error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH,
		syscall.ENETUNREACH}, func(e error) bool { return errors.Is(err, e) }) {
		return nil
	}
	return err
}
