package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// showNetwork gives a namespace a network of its own and an egress IP, and shows what its pods reach, as which source.
func (d *demo) showNetwork(ctx context.Context) error {
	text, err := readManifest("network", d.cluster.Options().IPFamily)
	if err != nil {
		return err
	}
	d.printLine("%s", text)
	if err := d.showCommand(ctx, text, applyArgs...); err != nil {
		return err
	}
	if err := d.applyObjects(ctx, "network-pods"); err != nil {
		return err
	}
	if err := d.awaitRollout(ctx, "shop daemonset/till"); err != nil {
		return err
	}
	pods, err := d.listPods(ctx, "app=till")
	if err != nil {
		return err
	}
	var nodes []string
	for _, n := range d.cluster.Nodes() {
		nodes = append(nodes, n.Name)
	}
	e, err := d.awaitReady(ctx, "egressip-shop", nodes...)
	if err != nil {
		return err
	}
	d.printLine("")
	if err := d.showCommand(ctx, "", "get", "udn", "-n", "shop"); err != nil {
		return err
	}
	if err := d.showPlaces(ctx); err != nil {
		return err
	}
	d.printLine("")
	return d.showNetworkSources(ctx, pods, e)
}

// showNetworkSources judges connections of a network's pods. Pods of the default network do not answer them.
func (d *demo) showNetworkSources(ctx context.Context, pods []corev1.Pod, e *v1.EgressIP) error {
	own := make([][]string, len(pods))
	for i, p := range pods {
		var err error
		if own[i], err = networkAddresses(p, "shop/blue"); err != nil {
			return err
		}
	}
	perPod := make([][]row, len(pods))
	for i, p := range pods {
		for _, h := range d.cluster.ExternalHosts() {
			for _, ip := range h.IPs {
				perPod[i] = append(perPod[i], newRow(p, h.Name, ip, connections, e.Spec.EgressIPs))
			}
		}
		next := (i + 1) % len(pods)
		for _, ip := range own[next] {
			r := newRow(p, "pod on "+pods[next].Spec.NodeName, netip.MustParseAddr(ip), 1, own[i])
			perPod[i] = append(perPod[i], r)
		}
		for _, ip := range addressesOf(d.pods[0]) {
			r := newRow(p, "pod of default network", netip.MustParseAddr(ip), 1, nil)
			r.want = []string{noAnswer}
			perPod[i] = append(perPod[i], r)
		}
	}
	return d.connectAndJudge(ctx, pods, perPod)
}

// networkAddresses returns a pod's addresses in a network, which its status does not have.
func networkAddresses(p corev1.Pod, network string) (out []string, err error) {
	var entries map[string]struct {
		IPs []netip.Prefix `json:"ip_addresses"`
	}
	if err := json.Unmarshal([]byte(p.Annotations[v1.AnnotationPodNetworks]), &entries); err != nil {
		return nil, fmt.Errorf("annotation %s of pod %s: %w", v1.AnnotationPodNetworks, p.Name, err)
	}
	for _, ip := range entries[network].IPs {
		out = append(out, ip.Addr().String())
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("pod %s has no address in network %s", p.Name, network)
	}
	return out, nil
}
