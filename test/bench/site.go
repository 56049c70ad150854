package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

const siteName = "bench-site"

// site is a sandbox whose first two nodes, which run the controllers, are its egress nodes, and an EgressIP of the pods
// of one namespace.
type site struct {
	*cluster
	ips     []netip.Addr
	pod     *corev1.Pod // on the third node
	outside sandbox.Member
	close   func()
}

// site sets one up with an EgressIP of so many addresses. Whoever gets one clears it.
func (l *lab) site(ctx context.Context, ips int) (*site, error) {
	c, err := l.sandbox(ctx, "", 3, sandbox.Egret)
	if err != nil {
		return nil, err
	}
	s := &site{cluster: c, outside: c.ExternalHosts()[0],
		ips: []netip.Addr{netip.MustParseAddr("172.18.0.33"), netip.MustParseAddr("172.18.0.44")}[:ips]}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.clear(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *site) begin(ctx context.Context) (err error) {
	if err := s.EgressNodes(ctx, s.Nodes()[0].Name, s.Nodes()[1].Name); err != nil {
		return err
	}
	if s.pod, err = s.RunningPod(ctx, namespace, "connector", s.Nodes()[2].Name); err != nil {
		return err
	}
	if err := s.CreateEgressIP(ctx, s.object()); err != nil {
		return err
	}
	if s.close, err = traffic.ServeEcho(s.outside.Name); err != nil {
		return err
	}
	return s.whole(ctx)
}

func (s *site) object() *v1.EgressIP {
	e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: siteName}}
	for _, ip := range s.ips {
		e.Spec.EgressIPs = append(e.Spec.EgressIPs, ip.String())
	}
	e.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": namespace}
	return e
}

// clear has everything run that a failed measurement may have left down, and takes the EgressIP and the labels away.
func (s *site) clear(ctx context.Context) error {
	if s.close != nil {
		s.close()
	}
	if _, err := sandbox.Up(ctx, s.Options(), io.Discard); err != nil {
		return err
	}
	for _, n := range s.Nodes()[:2] {
		if err := s.StartProcess(ctx, n.Name, controllerProgram); err != nil {
			return err
		}
	}
	if err := s.DeleteEgressIP(ctx, siteName); err != nil {
		return err
	}
	return s.EgressNodes(ctx)
}

// held waits until every address of the site is held, and says by which node.
func (s *site) held(ctx context.Context, limit time.Duration) (map[netip.Addr]string, error) {
	where := map[netip.Addr]string{}
	return where, harness.Until(ctx, limit, 50*time.Millisecond, func() error {
		clear(where)
		e, err := s.EgressIP(ctx, siteName)
		if err != nil {
			return err
		}
		for _, i := range e.Status.Items {
			ip, _ := netip.ParseAddr(i.EgressIP)
			where[ip] = i.Node
		}
		ready := meta.FindStatusCondition(e.Status.Conditions, v1.ConditionReady)
		if len(where) != len(s.ips) || ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("EgressIP %s is on %v, Ready %+v", siteName, where, ready)
		}
		return nil
	})
}

// moveTo has a node host the site's one address, by taking the label from the other for a while.
func (s *site) moveTo(ctx context.Context, node string) error {
	where, err := s.held(ctx, time.Minute)
	if err != nil || where[s.ips[0]] == node {
		return err
	}
	if err := s.EgressNodes(ctx, node); err != nil {
		return err
	}
	err = harness.Until(ctx, time.Minute, 50*time.Millisecond, func() error {
		where, err := s.held(ctx, time.Minute)
		if err == nil && where[s.ips[0]] != node {
			err = fmt.Errorf("%s is on %s, not on %s", s.ips[0], where[s.ips[0]], node)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.EgressNodes(ctx, s.Nodes()[0].Name, s.Nodes()[1].Name)
}

// whole waits until all nodes are Ready without a taint, with an agent that has reported in this boot, and every
// address is held.
func (s *site) whole(ctx context.Context) error {
	const limit = 2 * time.Minute
	for _, n := range s.Nodes() {
		err := harness.Until(ctx, limit, 200*time.Millisecond, func() error {
			node, _, err := s.NodeWhole(ctx, n.Name)
			if err == nil && len(node.Spec.Taints) > 0 {
				err = fmt.Errorf("node %s has taints %v", n.Name, node.Spec.Taints)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := s.held(ctx, limit)
	return err
}

// probe names how the controller finds out whether a node is reachable: port-9, or grpc-PORT.
func (c *cluster) probe() string {
	if port := c.Options().HealthcheckPort; port != 0 {
		return fmt.Sprint("grpc-", port)
	}
	return "port-9"
}
