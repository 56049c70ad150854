package main

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

const (
	behindName  = "bench-behind"
	behindLabel = "bench-behind"
)

// entrance is a site whose object is an EgressService, a watchman who sees what pods of all nodes get out, and a load
// balancer's part: the host outside sends to the Service's address by the node that has the label, from the moment on
// that a watch shows it there.
type entrance struct {
	*watchman
	server *harness.Job // in the site's pod
	stop   context.CancelFunc

	mu       sync.Mutex
	labelled map[string]bool
	host     string
	// when the label came to another node, and when the status named another one
	label, status time.Time
	failed        error
}

// entrance sets one up. Whoever gets one leaves it.
func (l *lab) entrance(ctx context.Context) (*entrance, error) {
	c, err := l.sandbox(ctx, "", 3, sandbox.Egret)
	if err != nil {
		return nil, err
	}
	if _, err := c.RunningPod(ctx, namespace, connector, c.Nodes()[2].Name); err != nil {
		return nil, err
	}
	if err := c.LabelPod(ctx, namespace, connector, behindLabel, "yes"); err != nil {
		return nil, err
	}
	// no network here has it
	o := balanced{c, behindName, netip.MustParseAddr("192.0.2.33"), map[string]string{behindLabel: "yes"}}
	s, err := c.site(ctx, o, namespace, []netip.Addr{o.ip})
	if err != nil {
		return nil, err
	}
	w, err := s.watch(ctx)
	if err != nil {
		return nil, err
	}
	e := &entrance{watchman: w, labelled: map[string]bool{}, stop: func() {}}
	if err := e.begin(ctx); err != nil {
		return nil, errors.Join(err, e.leave(ctx))
	}
	return e, nil
}

func (e *entrance) begin(ctx context.Context) (err error) {
	following, stop := context.WithCancel(ctx)
	e.stop = stop
	if err := harness.WatchAll(following, e.Core.CoreV1().RESTClient(), "nodes", e.seeNode); err != nil {
		return err
	}
	if err := harness.WatchAll(following, e.Egret.EgressIP, "egressservices", e.seeService); err != nil {
		return err
	}
	if e.server, err = traffic.ServeInPod(ctx, e.Cluster, e.pod); err != nil {
		return err
	}
	begin := time.Now()
	pods := e.senders()
	if err := e.CreatePods(ctx, pods); err != nil {
		return err
	}
	return e.arrived(ctx, pods, begin)
}

// leave removes everything.
func (e *entrance) leave(ctx context.Context) error {
	e.stop()
	if e.server != nil {
		e.server.Stop()
	}
	gone := sandbox.InNetns(e.outside.Name, func() error { return netlink.RouteDel(by(e.ips[0], netip.Addr{})) })
	return errors.Join(e.watchman.leave(ctx), gone)
}

// senders are pods behind the Service, one a node, that send datagrams all the time. They serve nothing: none of them
// is ever Ready.
func (e *entrance) senders() (pods []*corev1.Pod) {
	for _, n := range e.Nodes() {
		p := e.sender(behindName+"-"+n.Name, n.Name)
		p.Labels[behindLabel] = "yes"
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "bench/serves"}}
		pods = append(pods, p)
	}
	return pods
}

// seeNode leads the host outside to the node that the label has come to.
func (e *entrance) seeNode(n *corev1.Node, now time.Time) {
	_, is := n.Labels[v1.LabelEgressService+namespace+"-"+behindName]
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.labelled[n.Name]
	if e.labelled[n.Name] = is; was || !is {
		return
	}
	e.label = now
	for _, m := range e.Nodes() {
		if m.Name == n.Name {
			e.failed = errors.Join(e.failed, sandbox.InNetns(e.outside.Name,
				func() error { return netlink.RouteReplace(by(e.ips[0], m.IPs[0])) }))
		}
	}
}

func (e *entrance) seeService(s *v1.EgressService, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Name == behindName && s.Status.Host != e.host {
		e.host, e.status = s.Status.Host, now
	}
}

// by is the route to an address by a neighbour.
func by(ip, via netip.Addr) *netlink.Route {
	return &netlink.Route{Dst: netlink.NewIPNet(ip.AsSlice()), Gw: via.AsSlice()}
}

// moved is when the status named another node, and when the label came to it, if both did after a time.
func (e *entrance) moved(after time.Time) (status, label time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil && (!e.status.After(after) || !e.label.After(after)) {
		return status, label, errors.New("no status names another host, or no node has got its label")
	}
	return e.status, e.label, e.failed
}
