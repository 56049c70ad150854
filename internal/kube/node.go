package kube

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Node is a node as the world has it. An annotation that cannot be read is a problem; a missing one is not.
func Node(o *corev1.Node) *world.Node {
	n := &world.Node{
		Name: o.Name, UID: string(o.UID), Labels: o.Labels, Ready: isReady(o),
		BootID: o.Status.NodeInfo.BootID, Version: o.ResourceVersion, Deleting: aboutToGo(o),
		Unschedulable:     o.Spec.Unschedulable,
		AllocationProblem: o.Annotations[v1.AnnotationAllocationProblem],
	}
	var tooMany error
	if n.InternalIPs, tooMany = atMost(internalAddresses(o), maxInternalIPs); tooMany != nil {
		n.Problems = append(n.Problems, problemOf("status.addresses of type InternalIP", tooMany.Error()))
	}
	n.Published, n.OtherNetworks = Published(o.Annotations), otherNetworks(o.Annotations)
	for _, r := range nodeReaders {
		text, there := o.Annotations[r.annotation]
		if !there {
			continue
		}
		if err := r.read(n, text); err != nil {
			n.Problems = append(n.Problems, problemOf("annotation "+r.annotation,
				plainText(err.Error())+": remove it, and its writer puts it right"))
			noteUnread(n, r.annotation)
		}
	}
	if len(n.HostAddrs) == 0 {
		n.HostAddrs = n.InternalIPs
	}
	return n
}

// toBeDeleted is the cluster autoscaler's taint: it drains the node, and deletes its machine.
const toBeDeleted = "ToBeDeletedByClusterAutoscaler"

func aboutToGo(o *corev1.Node) bool {
	taints := func(t corev1.Taint) bool { return t.Key == toBeDeleted }
	return o.DeletionTimestamp != nil || slices.ContainsFunc(o.Spec.Taints, taints)
}

func problemOf(about, why string) world.NodeProblem {
	return world.NodeProblem{About: about, Text: about + ": " + why}
}

// noteUnread notes that an annotation cannot be read, of those whose previous value counts until it is written again.
func noteUnread(n *world.Node, annotation string) {
	switch annotation {
	case v1.AnnotationNodeChassisID:
		n.Unread.Chassis = true
	case v1.AnnotationNodePrimaryIfaddr:
		n.Unread.Primary = true
	case v1.AnnotationHostCIDRs:
		n.Unread.HostAddrs = true
	case v1.AnnotationL3GatewayConfig:
		n.Unread.Gateway = true
	case v1.AnnotationNodeID:
		n.Unread.ID = true
	case v1.AnnotationNodeSubnets:
		n.Unread.Subnets = true
	}
}

// internalAddresses are the addresses that the kubelet tells of: all that is known of a node on which no agent runs, or
// none yet.
func internalAddresses(o *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, a := range o.Status.Addresses {
		if ip, err := parseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			out = append(out, ip)
		}
	}
	return out
}

func isReady(o *corev1.Node) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// nodeReader reads one annotation into a node. The readable part is kept even if there is an error.
type nodeReader struct {
	annotation string
	read       func(n *world.Node, text string) error
}

var nodeReaders = []nodeReader{
	{v1.AnnotationNodeChassisID, readChassisID},
	{v1.AnnotationNodeID, readID},
	{v1.AnnotationNodeSubnets, readSubnets},
	{v1.AnnotationNodePrimaryIfaddr, readPrimary},
	{v1.AnnotationHostCIDRs, readHostCIDRs},
	{v1.AnnotationL3GatewayConfig, readGateway},
	{v1.AnnotationNodeGatewayRouterLRPIfaddrs, readJoin},
	{v1.AnnotationNodeTransitSwitchPortIfaddr, readTransit},
	{v1.AnnotationEgressCordon, readCordon},
	{v1.AnnotationRecordedAddresses, readRecord},
	{v1.AnnotationSecondaryNetworks, readConfirmed},
	{v1.AnnotationExternalIPs, readExternalIPs},
}

func readCordon(n *world.Node, text string) error {
	n.Cordoned = true
	if boot, own := strings.CutPrefix(text, v1.EgressCordonShutdown); own {
		n.CordonBoot = boot
	}
	return nil
}

func readConfirmed(n *world.Node, text string) error {
	list, tooMany := atMost(strings.Split(text, ","), maxHostCIDRs)
	var err error
	n.Confirmed, err = parsePrefixes(list)
	return errors.Join(tooMany, err)
}

func readExternalIPs(n *world.Node, text string) (err error) {
	if n.LetsExternalIPs = text == "true"; !n.LetsExternalIPs && text != "false" {
		err = fmt.Errorf("%q is neither true nor false", text)
	}
	return err
}

// readChassisID takes a node's own name only, which is what agents publish (package node): with another's a node would
// have that node's packets sent to its own tunnel endpoint.
func readChassisID(n *world.Node, text string) error {
	if text != n.Name {
		return fmt.Errorf("%q is not the node's name, which is the id of its chassis", text)
	}
	n.ChassisID = text
	return nil
}

func readID(n *world.Node, text string) error {
	id, err := strconv.Atoi(text)
	if err != nil || id < 1 {
		return fmt.Errorf("%q is no id from 1", text)
	}
	n.ID = id
	return nil
}

func readSubnets(n *world.Node, text string) error {
	var own oneOrMany
	err := ofDefault(text, &own)
	if networksByName(text) == nil {
		own, err = oneOrMany{text}, nil // the oldest form: the subnet alone
	}
	list, tooMany := atMost(own, maxSubnets)
	var unreadable error
	n.Subnets, unreadable = parsePrefixes(list)
	return errors.Join(err, tooMany, unreadable, readParts(n, networksByName(text)))
}

// readParts reads a node's subnets of networks beside the default one. Those of one network that cannot be read do not
// count, and the others do.
func readParts(n *world.Node, byName map[string]json.RawMessage) error {
	delete(byName, ref.DefaultNetwork)
	names, err := atMost(slices.Sorted(maps.Keys(byName)), world.MaxNetworkID)
	for _, name := range names {
		var own oneOrMany
		if json.Unmarshal(byName[name], &own) != nil {
			err = errors.Join(err, fmt.Errorf("network %q: no list of subnets", name))
			continue
		}
		list, tooMany := atMost(own, maxSubnets)
		subnets, unreadable := parsePrefixes(list)
		err = errors.Join(err, tooMany, unreadable)
		if len(subnets) > 0 && n.Further == nil {
			n.Further = map[string]world.NodeNetwork{}
		}
		if len(subnets) > 0 {
			n.Further[name] = world.NodeNetwork{Subnets: subnets}
		}
	}
	return err
}

func readPrimary(n *world.Node, text string) error {
	var pair addrPair
	if err := json.Unmarshal([]byte(text), &pair); err != nil {
		return err
	}
	var err error
	n.Primary, err = pair.parsePrefixes()
	return err
}

func readHostCIDRs(n *world.Node, text string) error {
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return err
	}
	list, tooMany := atMost(list, maxHostCIDRs)
	ps, err := parsePrefixes(list)
	for _, p := range ps {
		n.HostAddrs, n.CIDRs = append(n.HostAddrs, p.Addr()), append(n.CIDRs, p)
	}
	return errors.Join(tooMany, err)
}

// gatewayConfig is what an l3-gateway-config says of one network. OVN-Kubernetes writes single values beside the lists
// for one family; they say nothing more.
type gatewayConfig struct {
	Mode           string   `json:"mode"`
	BridgeID       string   `json:"bridge-id,omitempty"`
	InterfaceID    string   `json:"interface-id,omitempty"`
	MACAddress     string   `json:"mac-address,omitempty"`
	IPAddresses    []string `json:"ip-addresses,omitempty"`
	NextHops       []string `json:"next-hops,omitempty"`
	NodePortEnable string   `json:"node-port-enable,omitempty"`
}

func readGateway(n *world.Node, text string) error {
	var g gatewayConfig
	if err := ofDefault(text, &g); err != nil {
		return err
	}
	hops, tooMany := atMost(g.NextHops, maxGateways)
	gateways, err := parseAddrs(hops)
	n.Gateways = gateways
	if g.MACAddress != "" {
		var unreadable error
		n.UplinkMAC, unreadable = world.ParseHardwareAddr(g.MACAddress)
		err = errors.Join(err, unreadable)
	}
	return errors.Join(tooMany, err)
}

func readJoin(n *world.Node, text string) error {
	var own addrPair
	if err := ofDefault(text, &own); err != nil {
		return err
	}
	var err error
	n.Join, err = own.parsePrefixes()
	return err
}

func readTransit(n *world.Node, text string) error {
	var pair addrPair
	if err := json.Unmarshal([]byte(text), &pair); err != nil {
		return err
	}
	var err error
	n.Transit, err = pair.parsePrefixes()
	return err
}

// AllocationAnnotations are those of a node's allocation, which the controller writes: MergeNetworks keeps what they
// do not name. An id of 0 leaves its addresses between routers out; no subnets leave those out.
func AllocationAnnotations(a world.Allocation) map[string]string {
	out, subnets := map[string]string{}, map[string][]string{}
	note := func(network string, list []netip.Prefix) {
		for _, p := range list {
			subnets[network] = append(subnets[network], p.String())
		}
	}
	note(ref.DefaultNetwork, a.Subnets)
	for name, part := range a.Further {
		note(name, part.Subnets)
	}
	if len(subnets) > 0 {
		out[v1.AnnotationNodeSubnets] = toJSON(subnets)
	}
	if a.ID != 0 {
		out[v1.AnnotationNodeID] = strconv.Itoa(a.ID)
		out[v1.AnnotationNodeGatewayRouterLRPIfaddrs] = toJSON(map[string]addrPair{ref.DefaultNetwork: pairOf(a.Join)})
		out[v1.AnnotationNodeTransitSwitchPortIfaddr] = toJSON(pairOf(a.Transit))
	}
	return out
}

// HostFacts are what a node's agent publishes of its host.
type HostFacts struct {
	Zone, ChassisID string
	Mode            world.GatewayMode
	Bridge          string // "breth0"
	UplinkMAC       string
	ManagementMAC   string
	Primary         []netip.Prefix
	HostCIDRs       []netip.Prefix // egress IPs left out
	Gateways        []netip.Addr
}

// publishableAddrs are the addresses that others will read: those of the primary network, and as many more as they
// take.
func publishableAddrs(h HostFacts) []netip.Prefix {
	first := func(p netip.Prefix) int {
		if slices.Contains(h.Primary, p) {
			return 0
		}
		return 1
	}
	list := sortedCopy(h.HostCIDRs, func(a, b netip.Prefix) int { return cmp.Or(first(a)-first(b), a.Compare(b)) })
	return list[:min(len(list), maxHostCIDRs)]
}

// HostAnnotations are those that the agent writes on its own node: MergeNetworks keeps what they do not name.
func HostAnnotations(h HostFacts) map[string]string {
	cidrs := []string{}
	for _, p := range sortedCopy(publishableAddrs(h), netip.Prefix.Compare) {
		cidrs = append(cidrs, p.String())
	}
	g := gatewayConfig{Mode: string(h.Mode), BridgeID: h.Bridge,
		InterfaceID: plan.DefaultNames().Localnet(h.Bridge, h.Zone),
		MACAddress:  h.UplinkMAC, NodePortEnable: "true"}
	for _, p := range h.Primary {
		g.IPAddresses = append(g.IPAddresses, p.String())
	}
	for _, a := range h.Gateways {
		g.NextHops = append(g.NextHops, a.String())
	}
	return map[string]string{
		v1.AnnotationZoneName: h.Zone, v1.AnnotationNodeChassisID: h.ChassisID,
		v1.AnnotationNodePrimaryIfaddr:        toJSON(pairOf(h.Primary)),
		v1.AnnotationHostCIDRs:                toJSON(cidrs),
		v1.AnnotationL3GatewayConfig:          toJSON(map[string]gatewayConfig{ref.DefaultNetwork: g}),
		v1.AnnotationNodeMgmtPortMACAddresses: toJSON(map[string]string{ref.DefaultNetwork: h.ManagementMAC}),
	}
}
