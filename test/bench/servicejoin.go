package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/test/harness"
)

// serviceSteps are how many endpoints the Service has, one step after the other.
var serviceSteps = [...]int{10, 1000}

func serveLabel(n int) string { return fmt.Sprint("bench-serve-", n) }

// serviceJoins times how long an endpoint takes to join the Service of an EgressService that has 10 and 1,000 already:
// a running pod gets the label that the Service selects, and its own node and the host must have it, until its packets
// have the ingress IP. All pods are there from the start. Kubernetes' EndpointSlices follow, beside it.
func serviceJoins(ctx context.Context, l *lab) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := l.scene(ctx, 2)
	if err != nil {
		return err
	}
	defer s.close()
	defer func() { err = errors.Join(err, s.cleanServed(context.WithoutCancel(ctx))) }()
	nodes := fakeNodes(1 + serviceSteps[len(serviceSteps)-1]/podsANode)
	if err := s.EnsureFakeNodes(ctx, nodes); err != nil {
		return err
	}
	pods := fakePods(nodes, served)
	if err := s.CreatePods(ctx, pods); err != nil {
		return err
	}
	if err := s.RunFakePods(ctx, pods[:serviceSteps[len(serviceSteps)-1]]); err != nil {
		return err
	}
	return s.serviceJoins(ctx, l)
}

// served are the labels of the i-th pod: one for each step that has it, and one that all have.
func served(i int) map[string]string {
	labels := map[string]string{joinLabel: ""}
	for _, n := range serviceSteps {
		if i < n {
			labels[serveLabel(n)] = "yes"
		}
	}
	return labels
}

func (s *scene) cleanServed(ctx context.Context) error {
	var errs []error
	for _, n := range serviceSteps {
		errs = append(errs, s.balanced(n).remove(ctx), s.LabelPod(ctx, namespace, s.pod, serveLabel(n), ""))
	}
	return errors.Join(append(errs, s.RemovePods(ctx, namespace, joinLabel), s.RemoveFakeNodes(ctx))...)
}

// balanced is the Service of n endpoints.
func (s *scene) balanced(n int) balanced {
	return balanced{s.cluster, serveLabel(n), netip.MustParseAddr("192.0.2.40"),
		map[string]string{serveLabel(n): "yes"}}
}

func (s *scene) serviceJoins(ctx context.Context, l *lab) error {
	var last balanced
	all, err := s.inSteps(ctx, l, serviceSteps[:], func(n int) (joining, error) {
		to := s.balanced(n)
		set := "egressservice/" + namespace + "/" + to.name + "/remote.v4"
		if last.cluster != nil {
			if err := last.remove(ctx); err != nil {
				return joining{}, err
			}
		}
		last = to
		if err := to.create(ctx); err != nil {
			return joining{}, err
		}
		follow := func(ctx context.Context, n int) error {
			return harness.Until(ctx, time.Minute, 100*time.Millisecond, func() error { return to.has(ctx, n) })
		}
		return joining{fmt.Sprintf("egress-service/join/%d-endpoints", n), to.ip, set, serveLabel(n), follow},
			follow(ctx, n)
	})
	if err == nil {
		reportJoins(l, "egress-service/join/1000-to-10", all[0], all[1])
	}
	return err
}

// has is nil when the Service's EndpointSlices have so many endpoints.
func (o balanced) has(ctx context.Context, n int) error {
	list, err := o.Core.DiscoveryV1().EndpointSlices(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + o.name})
	if err != nil {
		return err
	}
	have := 0
	for _, s := range list.Items {
		have += len(s.Endpoints)
	}
	if have != n {
		err = fmt.Errorf("the EndpointSlices of Service %s have %d endpoints, not %d", o.name, have, n)
	}
	return err
}
