package main

import (
	"context"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/kube"
)

// The link between the control plane and the first node, in networks for documentation (RFC 5737, RFC 3849).
const (
	controlPlaneLink, nodeLink   = "pods0", "cp0"
	controlPlane4, controlPlane6 = "192.0.2.1/30", "2001:db8:2::1/126"
	firstNode4, firstNode6       = "192.0.2.2/30", "2001:db8:2::2/126"
)

// connectControlPlane gives the API server, which proxies to pods, a way to them: a link to the first node, whose host forwards. In a sandbox the control
// plane is no node.
func (s suite) connectControlPlane(ctx context.Context) error {
	node := s.cluster.Nodes()[0].Name
	if _, err := s.cluster.ExecIn(ctx, "cp", "ip", "link", "show", controlPlaneLink); err == nil {
		return nil
	}
	for _, step := range []struct {
		who     string
		command []string
	}{
		{"cp", []string{"link", "add", controlPlaneLink, "type", "veth", "peer", "name", nodeLink, "netns", node}},
		{"cp", []string{"link", "set", controlPlaneLink, "up"}},
		{"cp", []string{"address", "add", controlPlane4, "dev", controlPlaneLink}},
		{"cp", []string{"address", "add", controlPlane6, "dev", controlPlaneLink, "nodad"}},
		{node, []string{"link", "set", nodeLink, "up"}},
		{node, []string{"address", "add", firstNode4, "dev", nodeLink}},
		{node, []string{"address", "add", firstNode6, "dev", nodeLink, "nodad"}},
	} {
		if _, err := s.cluster.ExecIn(ctx, step.who, append([]string{"ip"}, step.command...)...); err != nil {
			return err
		}
	}
	// A link with its checksums left to hardware that is not there would lose what OVS' userspace datapath takes from it.
	if _, err := s.cluster.ExecIn(ctx, "cp", "ethtool", "-K", controlPlaneLink, "tx", "off"); err != nil {
		return err
	}
	return s.routePods(ctx)
}

// routePods sends the control plane's packets to pods over that link.
func (s suite) routePods(ctx context.Context) error {
	client, err := s.cluster.Client()
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		for _, subnet := range kube.Node(&nodes.Items[i]).Subnets {
			via := netip.MustParsePrefix(firstNode4)
			if subnet.Addr().Is6() {
				via = netip.MustParsePrefix(firstNode6)
			}
			if _, err := s.cluster.ExecIn(ctx, "cp", "ip", "route", "replace", subnet.String(), "via", via.Addr().String()); err != nil {
				return fmt.Errorf("route of the control plane: %w", err)
			}
		}
	}
	return nil
}
