package main

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
)

// connectControlPlane gives the API server, which proxies to pods, a way to them: a link to each node, whose host
// forwards to its own pods. In a sandbox the control plane is no node.
func (s suite) connectControlPlane(ctx context.Context) error {
	client, err := s.cluster.Client()
	if err != nil {
		return err
	}
	for i, n := range s.cluster.Nodes() {
		if err := s.connectNode(ctx, i, n); err != nil {
			return err
		}
		object, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, subnet := range kube.Node(object).Subnets {
			via := linkAddress(i, 2, subnet.Addr().Is4())
			if err := s.ip(ctx, "cp", "route replace %s via %s", subnet, via); err != nil {
				return err
			}
		}
	}
	return nil
}

// connectNode makes the link to the i-th node, unless an earlier run has.
func (s suite) connectNode(ctx context.Context, i int, n sandbox.Member) error {
	link := fmt.Sprint("pods", i)
	if s.ip(ctx, "cp", "link show %s", link) == nil {
		return nil
	}
	if err := s.ip(ctx, "cp", "link add %s type veth peer name cp0 netns %s", link, n.Name); err != nil {
		return err
	}
	// Checksums left to hardware that is not there would be lost in OVS' userspace datapath.
	if _, err := s.cluster.ExecIn(ctx, "cp", "ethtool", "-K", link, "tx", "off"); err != nil {
		return err
	}
	for number, end := range []struct{ who, link string }{{"cp", link}, {n.Name, "cp0"}} {
		for _, v4 := range []bool{true, false} {
			if err := s.ip(ctx, end.who, "address add %s/%d dev %s", linkAddress(i, number+1, v4), linkBits(v4),
				end.link); err != nil {
				return err
			}
		}
		if err := s.ip(ctx, end.who, "link set %s up", end.link); err != nil {
			return err
		}
	}
	return nil
}

// linkAddress is an end of the i-th link: 1 is the control plane's, 2 the node's. The networks are for documentation
// (RFC 5737, RFC 3849).
func linkAddress(i, end int, v4 bool) string {
	if v4 {
		return fmt.Sprintf("192.0.2.%d", 4*i+end)
	}
	return fmt.Sprintf("2001:db8:2:%d::%d", i, end)
}

func linkBits(v4 bool) int {
	if v4 {
		return 30
	}
	return 64
}

// ip runs ip(8) on a node or in the network of a host or the control plane.
func (s suite) ip(ctx context.Context, who, format string, args ...any) error {
	_, err := s.cluster.ExecIn(ctx, who, append([]string{"ip"}, strings.Fields(fmt.Sprintf(format, args...))...)...)
	return err
}
