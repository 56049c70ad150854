package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	return within(s.T, limit, func() error {
		o, err := s.get()
		if err != nil {
			return err
		}
		if o.Status.Host != node || !meta.IsStatusConditionTrue(o.Status.Conditions, "Ready") {
			return fmt.Errorf("status.host is %q, want %q; conditions %+v", o.Status.Host, node, o.Status.Conditions)
		}
		return s.labelled(node)
	})
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
