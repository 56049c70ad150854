package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// egressService is an EgressService of a test, which somebody else creates.
type egressService struct {
	*testing.T
	c               *cluster
	namespace, name string
}

func (s egressService) get() (*v1.EgressService, error) {
	o := &v1.EgressService{}
	return o, s.c.kube.EgressIP.Get().Namespace(s.namespace).Resource("egressservices").Name(s.name).
		Do(context.Background()).Into(o)
}

// creates it, until the test ends.
func (s egressService) creates(spec v1.EgressServiceSpec) {
	s.Helper()
	o := &v1.EgressService{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: spec}
	must(s.T, s.c.kube.EgressIP.Post().Namespace(s.namespace).Resource("egressservices").Body(o).Do(s.Context()).
		Error())
	s.Cleanup(s.deletes)
}

func (s egressService) patch(text string) {
	s.Helper()
	must(s.T, s.c.kube.EgressIP.Patch(mergePatch).Namespace(s.namespace).Resource("egressservices").Name(s.name).
		Body([]byte(text)).Do(s.Context()).Error())
}

// deletes it, if it is there.
func (s egressService) deletes() {
	s.Helper()
	err := s.c.kube.EgressIP.Delete().Namespace(s.namespace).Resource("egressservices").Name(s.name).
		Do(context.Background()).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		s.Error(err)
	}
}

// until waits for a condition, as of the object's present generation, and returns its message.
func (s egressService) until(condition string, status metav1.ConditionStatus, reason string) string {
	s.Helper()
	var c *metav1.Condition
	within(s.T, soon, func() error {
		o, err := s.get()
		if err != nil {
			return err
		}
		c = meta.FindStatusCondition(o.Status.Conditions, condition)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != o.Generation {
			return fmt.Errorf("EgressService %s: condition %s is %+v, want %s %s of generation %d; it has %v", s.name,
				condition, c, status, reason, o.Generation, s.c.eventsOf(o.UID))
		}
		return nil
	})
	return c.Message
}

// hostIs waits until the status says that this node is the host and holds the addresses, and it alone has the label.
func (s egressService) hostIs(node string, limit time.Duration) time.Duration {
	s.Helper()
	return within(s.T, limit, func() error { return errors.Join(s.readyAt(node), s.labelled(node)) })
}

// isReadyOn waits until a node is the host and holds the addresses, or all are it.
func (s egressService) isReadyOn(host string) {
	s.Helper()
	within(s.T, soon, func() error { return s.readyAt(host) })
}

// readyAt is nil if the status says so.
func (s egressService) readyAt(host string) error {
	o, err := s.get()
	ready := meta.FindStatusCondition(o.Status.Conditions, "Ready")
	if err == nil && (o.Status.Host != host || ready == nil || ready.Status != metav1.ConditionTrue ||
		ready.ObservedGeneration != o.Generation) {
		err = fmt.Errorf("status.host is %q, want %q; conditions %+v", o.Status.Host, host, o.Status.Conditions)
	}
	return err
}

// nothingLeft says that no node has rows of the EgressService.
func (s egressService) nothingLeft() error {
	for _, m := range s.c.nodes {
		look := "nft list table inet egret | grep -i egressservice; ip rule show pref 5000; ip -6 rule show pref 5000; " +
			"ovn-nbctl lr-policy-list ovn_cluster_router | grep ' 101 '"
		out, err := s.c.feed(s.Context(), m.Name, nil, "sh", "-c", look)
		if text := strings.TrimSpace(out); text != "" {
			return fmt.Errorf("%s still has %s (%v)", m.Name, text, err)
		}
	}
	return nil
}

// labelled is nil if exactly these nodes have the label that load balancers look for.
func (s egressService) labelled(want ...string) error {
	label := "egress-service.k8s.ovn.org/" + s.namespace + "-" + s.name
	list, err := s.c.api.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return err
	}
	var have []string
	for _, n := range list.Items {
		have = append(have, n.Name)
	}
	if slices.Sort(have); !slices.Equal(have, want) {
		err = errors.Join(err, fmt.Errorf("nodes %v have label %s, want %v", have, label, want))
	}
	return err
}
