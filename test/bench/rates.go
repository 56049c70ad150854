package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

const (
	ratePort = 9997
	rateName = "bench-rate"
	// rateClients and rateSpan are how many connections are opened at a time, and for how long.
	rateClients = "8"
	rateSpan    = "4s"
)

// rates measures new connections a second through a Service's cluster IP, from a pod to one on another node, and through a node port, from
// outside to a pod on another node than the one that was asked: on Egret, and on a bridge CNI with kube-proxy, in turns.
func rates(ctx context.Context, l *lab) error {
	egret, err := l.sandbox(ctx, "-two", 2, sandbox.Egret)
	if err != nil {
		return err
	}
	plain, err := l.sandbox(ctx, "-proxy", 2, sandbox.PTP)
	if err != nil {
		return err
	}
	var sites [2]*rateSite
	for i, c := range []*cluster{plain, egret} {
		sites[i], err = c.rateSite(ctx)
		defer sites[i].stop()
		if err != nil {
			return fmt.Errorf("%s: %w", c.Options().Name, err)
		}
	}
	for range l.runs {
		for _, s := range sites {
			if err := s.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.Options().Name, err)
			}
		}
	}
	kubeProxy, ours := sites[0], sites[1]
	l.report(result{name: "services/connections/cluster-ip/kube-proxy", unit: "1/s", runs: kubeProxy.clusterIP})
	l.report(result{name: "services/connections/cluster-ip/egret", unit: "1/s", runs: ours.clusterIP, base: kubeProxy.clusterIP.median()})
	l.report(result{name: "services/connections/node-port/kube-proxy", unit: "1/s", runs: kubeProxy.nodePort})
	l.report(result{name: "services/connections/node-port/egret", unit: "1/s", runs: ours.nodePort, base: kubeProxy.nodePort.median()})
	return errors.Join(l.down(egret.Options().Name), l.down(plain.Options().Name))
}

// rateSite is a cluster with a Service whose one pod is on the second node, and a client pod on the first.
type rateSite struct {
	*cluster
	client              *corev1.Pod
	clusterIP, nodePort sample // connections a second

	viaClusterIP, viaNodePort netip.AddrPort
	jobs                      []*job
}

func (c *cluster) rateSite(ctx context.Context) (*rateSite, error) {
	s := &rateSite{cluster: c}
	if c.Options().CNI == sandbox.PTP {
		for i := range c.Nodes() {
			if err := s.bridge(ctx, i); err != nil {
				return s, err
			}
		}
	}
	nodes := c.Nodes()
	var err error
	if s.client, err = c.runningPod(ctx, rateName+"-client", nodes[0].Name); err != nil {
		return s, err
	}
	server, err := c.runningPod(ctx, rateName, nodes[1].Name)
	if err != nil {
		return s, err
	}
	if err := c.labelPod(ctx, server.Name, rateName, "server"); err != nil {
		return s, err
	}
	j, err := c.inPod(ctx, server, "greet", fmt.Sprint(ratePort))
	if err != nil {
		return s, err
	}
	s.jobs = append(s.jobs, j)
	svc, err := c.rateService(ctx)
	if err != nil {
		return s, err
	}
	s.viaClusterIP = netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIP), ratePort)
	s.viaNodePort = netip.AddrPortFrom(nodes[0].IPs[0], uint16(svc.Spec.Ports[0].NodePort))
	// The first run waits until all is there.
	err = s.run(ctx)
	s.clusterIP, s.nodePort = nil, nil
	return s, err
}

func (c *cluster) rateService(ctx context.Context) (*corev1.Service, error) {
	services := c.core.CoreV1().Services(namespace)
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: rateName}}
	svc.Spec.Type, svc.Spec.Selector = corev1.ServiceTypeNodePort, map[string]string{rateName: "server"}
	svc.Spec.Ports = []corev1.ServicePort{{Port: ratePort}}
	made, err := services.Create(ctx, svc, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return services.Get(ctx, rateName, metav1.GetOptions{})
	}
	return made, err
}

func (s *rateSite) stop() {
	for _, j := range s.jobs {
		j.stop()
	}
}

// run measures both ways once.
func (s *rateSite) run(ctx context.Context) error {
	inPod, err := s.ExecIn(ctx, s.client.Spec.NodeName, "bash", "-c", netnsOf, "bash", s.client.Status.PodIP)
	if err != nil {
		return fmt.Errorf("network namespace of pod %s: %w", s.client.Name, err)
	}
	enter := []string{"nsenter", "--net=" + strings.TrimSpace(string(inPod)), "/opt/egret/bin/egret-bench"}
	if err := s.rate(ctx, s.client.Spec.NodeName, enter, s.viaClusterIP, &s.clusterIP); err != nil {
		return fmt.Errorf("cluster IP %s: %w", s.viaClusterIP, err)
	}
	outside := s.ExternalHosts()[0].Name
	if err := s.rate(ctx, outside, []string{filepath.Join(s.Options().BinDir, "egret-bench")}, s.viaNodePort, &s.nodePort); err != nil {
		return fmt.Errorf("node port %s: %w", s.viaNodePort, err)
	}
	return nil
}

// rate has a client open connections, and adds how many there were a second. A Service that was just made may take a moment.
func (s *rateSite) rate(ctx context.Context, who string, program []string, to netip.AddrPort, runs *sample) error {
	return until(ctx, time.Minute, time.Second, func() error {
		out, err := s.ExecIn(ctx, who, append(program, "open", to.String(), rateClients, rateSpan)...)
		if err != nil {
			return err
		}
		var n float64
		if _, err := fmt.Sscan(string(out), &n); err != nil {
			return fmt.Errorf("rate %q: %w", out, err)
		}
		runs.add(n)
		return nil
	})
}
