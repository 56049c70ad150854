package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/egret-net/egret/internal/sandbox"
)

// finalizer is what a cloud's controller puts on a Service until its load balancer is gone (KEP-980).
const finalizer = "service.kubernetes.io/load-balancer-cleanup"

// balancer stands in for a cloud: it gives each Service of type LoadBalancer an address that no network has, and routes
// the address from the client to the nodes that the Service's health check names, source address untouched, as a router
// does that learns of the address by BGP.
type balancer struct {
	client  *kubernetes.Clientset
	cluster *sandbox.Cluster
	host    string                // the client's
	given   int                   // addresses so far
	routes  map[netip.Addr]string // what the client's kernel has
}

// balance starts the load balancer; stop ends it.
func (s suite) balance(ctx context.Context) (stop func(), err error) {
	client, err := s.cluster.Client()
	if err != nil {
		return nil, err
	}
	b := &balancer{client: client, cluster: s.cluster, host: s.client(), routes: map[netip.Addr]string{}}
	if err := b.wire(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.run(ctx)
	}()
	return func() { cancel(); <-ended }, nil
}

func (b *balancer) run(ctx context.Context) {
	last := ""
	for {
		err := b.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != last {
			last = err.Error()
			fmt.Fprintln(os.Stderr, "load balancer, tried again:", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// round brings all Services and routes up to date.
func (b *balancer) round(ctx context.Context) error {
	list, err := b.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := map[netip.Addr]string{}
	for i := range list.Items {
		svc := &list.Items[i]
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.DeletionTimestamp != nil {
			if err := b.release(ctx, svc); err != nil {
				return err
			}
			continue
		}
		if err := b.serve(ctx, svc); err != nil {
			return err
		}
		for _, in := range svc.Status.LoadBalancer.Ingress {
			if ip, err := netip.ParseAddr(in.IP); err == nil && ours(ip) { // others are a spec's own
				want[ip] = b.nexthops(ctx, svc, ip)
			}
		}
	}
	return b.route(ctx, want)
}

// serve gives a Service its finalizer and its addresses.
func (b *balancer) serve(ctx context.Context, svc *corev1.Service) (err error) {
	if svc.Spec.LoadBalancerClass != nil {
		return nil
	}
	services := b.client.CoreV1().Services(svc.Namespace)
	if !slices.Contains(svc.Finalizers, finalizer) {
		svc.Finalizers = append(svc.Finalizers, finalizer)
		if svc, err = services.Update(ctx, svc, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if len(svc.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	b.given++
	for _, family := range svc.Spec.IPFamilies {
		ip := address(family, b.given)
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress,
			corev1.LoadBalancerIngress{IP: ip.String()})
	}
	_, err = services.UpdateStatus(ctx, svc, metav1.UpdateOptions{})
	return err
}

// release takes the address, then the finalizer, from a Service that has no load balancer any more.
func (b *balancer) release(ctx context.Context, svc *corev1.Service) (err error) {
	if !slices.Contains(svc.Finalizers, finalizer) {
		return nil
	}
	services := b.client.CoreV1().Services(svc.Namespace)
	if len(svc.Status.LoadBalancer.Ingress) > 0 {
		svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
		if svc, err = services.UpdateStatus(ctx, svc, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	svc.Finalizers = slices.DeleteFunc(svc.Finalizers, func(f string) bool { return f == finalizer })
	_, err = services.Update(ctx, svc, metav1.UpdateOptions{})
	return err
}

// nexthops are the nodes that an address leads to, as ip route takes them: those that pass the health check, if the
// Service has one. A client that the Service is to remember stays with one node: nodes do not tell each other.
func (b *balancer) nexthops(ctx context.Context, svc *corev1.Service, ip netip.Addr) string {
	var hops []string
	for _, n := range b.cluster.Nodes() {
		if port := svc.Spec.HealthCheckNodePort; port != 0 && !b.healthy(ctx, n, port) {
			continue
		}
		for _, via := range n.IPs {
			if via.Is4() == ip.Is4() {
				hops = append(hops, "nexthop via "+via.String())
			}
		}
	}
	if svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && len(hops) > 1 {
		hops = hops[:1]
	}
	return strings.Join(hops, " ")
}

// healthy asks a node's health check, as the client.
func (b *balancer) healthy(ctx context.Context, n sandbox.Member, port int32) bool {
	url := fmt.Sprintf("http://%s/healthz", netip.AddrPortFrom(n.IPs[0], uint16(port)))
	_, err := b.cluster.ExecIn(ctx, b.host, "wget", "-q", "-O", "/dev/null", "--no-proxy", "--tries=1", "--timeout=2",
		url)
	return err == nil
}

// route makes the client's routes those that are wanted. An address that no node serves is unreachable.
func (b *balancer) route(ctx context.Context, want map[netip.Addr]string) error {
	for ip := range b.routes {
		if _, ok := want[ip]; !ok {
			if _, err := b.ip(ctx, ip, "route del %s", ip); err != nil {
				return err
			}
			delete(b.routes, ip)
		}
	}
	for ip, hops := range want {
		if have, ok := b.routes[ip]; ok && have == hops {
			continue
		}
		how := fmt.Sprintf("%s src %s %s", ip, clientAddress(ip), hops)
		if hops == "" {
			how = "unreachable " + ip.String()
		}
		if _, err := b.ip(ctx, ip, "route replace %s", how); err != nil {
			return err
		}
		b.routes[ip] = hops
	}
	return nil
}
