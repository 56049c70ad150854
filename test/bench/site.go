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

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

const siteName = "bench-site"

// site is a sandbox whose first two nodes, which run the controllers, are its egress nodes, and an object of theirs.
type site struct {
	*cluster
	hosted
	space   string // of its pods
	ips     []netip.Addr
	pod     *corev1.Pod // on the third node
	outside sandbox.Member
	close   func()
}

// hosted is what gives pods source addresses of egress nodes: an EgressIP, or an EgressService.
type hosted interface {
	create(context.Context) error
	remove(context.Context) error
	// where is the node of each address; an error while not everybody is ready.
	where(context.Context) (map[netip.Addr]string, error)
}

// connector is the name of a site's pod.
const connector = "connector"

// ownSpace is the namespace of pods with a network of their own.
const ownSpace = "bench-own"

func spaceOf(own bool) string {
	if own {
		return ownSpace
	}
	return namespace
}

// site sets one up for pods of a namespace with an EgressIP of so many addresses. The caller clears it.
func (l *lab) site(ctx context.Context, space string, ips int) (*site, error) {
	c, err := l.sandbox(ctx, "", 3, sandbox.Egret)
	if err != nil {
		return nil, err
	}
	if space == ownSpace {
		if err := c.EnsureNetwork(ctx, space, benchSubnet); err != nil {
			return nil, err
		}
	}
	all := []netip.Addr{netip.MustParseAddr("172.18.0.33"), netip.MustParseAddr("172.18.0.44")}
	return c.site(ctx, siteIP{c, space, all[:ips]}, space, all[:ips])
}

func (c *cluster) site(ctx context.Context, h hosted, space string, ips []netip.Addr) (*site, error) {
	s := &site{cluster: c, hosted: h, space: space, outside: c.ExternalHosts()[0], ips: ips}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.clear(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *site) begin(ctx context.Context) (err error) {
	if err := s.EgressNodes(ctx, s.Nodes()[0].Name, s.Nodes()[1].Name); err != nil {
		return err
	}
	if s.pod, err = s.RunningPod(ctx, s.space, connector, s.Nodes()[2].Name); err != nil {
		return err
	}
	if err := s.create(ctx); err != nil {
		return err
	}
	if s.close, err = traffic.ServeEcho(s.outside.Name); err != nil {
		return err
	}
	return s.whole(ctx)
}

// siteIP is an EgressIP of the pods of one namespace.
type siteIP struct {
	*cluster
	space string
	ips   []netip.Addr
}

func (o siteIP) create(ctx context.Context) error {
	return o.CreateEgressIP(ctx, egressIP(siteName, o.space, nil, o.ips...))
}

func (o siteIP) remove(ctx context.Context) error { return o.DeleteEgressIP(ctx, siteName) }

func (o siteIP) where(ctx context.Context) (map[netip.Addr]string, error) {
	e, err := o.EgressIP(ctx, siteName)
	if err != nil {
		return nil, err
	}
	out := map[netip.Addr]string{}
	for _, i := range e.Status.Items {
		ip, _ := netip.ParseAddr(i.EgressIP)
		out[ip] = i.Node
	}
	if len(out) != len(o.ips) || !meta.IsStatusConditionTrue(e.Status.Conditions, v1.ConditionReady) {
		err = fmt.Errorf("EgressIP %s is on %v; conditions %+v", siteName, out, e.Status.Conditions)
	}
	return out, err
}

// clear has everything run that a failed measurement may have left down, and takes the object and the labels away.
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
	if err := s.remove(ctx); err != nil {
		return err
	}
	return s.EgressNodes(ctx)
}

// held waits until every address of the site is held, and says by which node.
func (s *site) held(ctx context.Context, limit time.Duration) (where map[netip.Addr]string, err error) {
	err = harness.Until(ctx, limit, 50*time.Millisecond, func() error {
		where, err = s.where(ctx)
		return err
	})
	return where, err
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
