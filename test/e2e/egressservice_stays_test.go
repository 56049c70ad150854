package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// anotherIn is how long a host that does not hold the addresses may be it, where another node can: 10 s, once more if
// another controller begins to lead meanwhile and measures anew, and what these cores take to say so.
const anotherIn = 25 * time.Second

// TestEgressServiceHostNeverHolds: the host moves to a node that cannot hold the addresses, for its ovn-controller or
// its agent stands still. Another one is chosen long before the former host stops translating: pods of other nodes go
// on, and no datagram has another source.
func TestEgressServiceHostNeverHolds(t *testing.T) {
	theCluster(t).alikeInBoth(t)
	for number, process := range map[int]string{80: "ovn-controller", 82: "egret-node"} {
		t.Run(process, func(t *testing.T) {
			c := theCluster(t)
			if process == "ovn-controller" {
				c.inFullMatrix(t)
			}
			from, stopped, to := c.nodes[0], c.nodes[1], c.nodes[2]
			s := newBehindService(t, number, v1.EgressServiceSpec{NodeSelector: on(from)})
			s.readyOn(from.Name)
			seen := c.capture(t)
			begun := time.Now()
			s.flows(seen, begun)
			signal := func(x syscall.Signal) {
				must(t, c.SignalProcess(context.WithoutCancel(t.Context()), stopped.Name, process, x))
			}
			signal(syscall.SIGSTOP)
			t.Cleanup(func() { signal(syscall.SIGCONT) })
			s.patch(fmt.Sprintf(`{"spec":{"nodeSelector":{"matchLabels":null,"matchExpressions":[`+
				`{"key":"kubernetes.io/hostname","operator":"In","values":[%q,%q]}]}}}`, stopped.Name, to.Name))
			within(t, soon, func() error { return s.hostedBy(stopped) })
			t.Logf("another host after %s", within(t, anotherIn, func() error { return s.hostedBy(to) }))
			within(t, soon, func() error { return s.labelled(to.Name) })
			s.announcedBy(to)
			rest := []string{behindPods[0], behindPods[2]}
			seen.flowing(c, s.n, rest, time.Now(), soon)
			o, err := s.get()
			must(t, err)
			within(t, soon, func() error {
				if told := strings.Join(c.eventsOf(o.UID), "\n"); !strings.Contains(told, "(NotHeld)") {
					return fmt.Errorf("told of %s", told)
				}
				return nil
			})
			signal(syscall.SIGCONT)
			s.readyOn(to.Name)
			s.flows(seen, time.Now())
			s.only(seen, begun, s.b.balancer.ips)
		})
	}
}

// hostedBy is nil if the status names a node as the host.
func (s egressService) hostedBy(m sandbox.Member) error {
	o, err := s.get()
	if err == nil && o.Status.Host != m.Name {
		err = fmt.Errorf("status.host is %q, want %q; conditions %+v", o.Status.Host, m.Name, o.Status.Conditions)
	}
	return err
}

// TestEgressServiceOnlyNode: the only node that can be the host is NotReady for a while, as Kubernetes has it, and its
// switch stands still for a moment. It stays the host, and every datagram has the Service's address. When no node can
// be it, pods leave with their nodes' addresses, or not at all where the annotation asks for that.
func TestEgressServiceOnlyNode(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	host := c.nodes[1]
	s := newBehindService(t, 84, v1.EgressServiceSpec{NodeSelector: on(host)})
	ips := s.b.balancer.ips
	s.readyOn(host.Name)
	seen := c.capture(t)
	begun := time.Now()
	s.flows(seen, begun)
	must(t, c.StopProcess(t.Context(), host.Name, "kubelet"))
	t.Cleanup(func() { c.startKubelet(t, host.Name) })
	within(t, notReadyTimeout, func() error {
		if c.isReady(host.Name) == nil {
			return fmt.Errorf("node %s is Ready", host.Name)
		}
		return nil
	})
	s.flows(seen, time.Now())
	must(t, s.hostedBy(host))
	c.startKubelet(t, host.Name)
	s.flows(seen, time.Now())
	s.readyOn(host.Name)
	must(t, s.labelled(host.Name))
	c.standsStill(t, host)
	s.flows(seen, time.Now())
	s.readyOn(host.Name)

	s.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"drop"}}}`, v1.AnnotationWhenUnassigned))
	s.patch(`{"spec":{"nodeSelector":{"matchLabels":{"kubernetes.io/hostname":"nobody"}}}}`)
	s.until(v1.ConditionFallback, metav1.ConditionTrue, v1.ReasonDrop)
	s.tells(v1.EventFallback)
	for _, p := range behindPods {
		s.n.from(p).to(c.outside(0)).soonReachesNothing()
	}
	s.moveTo(host)
	s.readyOn(host.Name)
	s.until(v1.ConditionFallback, metav1.ConditionFalse, v1.ReasonHosted)
	s.flows(seen, time.Now())
	s.only(seen, begun, ips)

	s.moveTo(sandbox.Member{Name: "nobody"})
	s.until(v1.ConditionFallback, metav1.ConditionTrue, v1.ReasonDrop)
	s.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1.AnnotationWhenUnassigned))
	s.until(v1.ConditionFallback, metav1.ConditionTrue, v1.ReasonNodeIP)
	for i, p := range behindPods {
		s.n.from(p).to(c.outside(0)).formerly(ips...).soonArrivesAs(c.nodes[i].IPs...)
	}
}
