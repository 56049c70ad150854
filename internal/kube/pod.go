package kube

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Namespace is a namespace as the world has it.
func Namespace(o *corev1.Namespace) *world.Namespace {
	n := &world.Namespace{Name: o.Name, Labels: o.Labels}
	n.Terminating = o.DeletionTimestamp != nil
	_, n.OwnNetwork = o.Labels[v1.LabelPrimaryNetwork]
	if list, limited := o.Annotations[v1.AnnotationEgressServiceNetworks]; limited {
		n.LimitsNetworks = true
		for entry := range strings.SplitSeq(list, ",") {
			n.Networks = append(n.Networks, strings.TrimSpace(entry))
		}
	}
	return n
}

// Pod is a pod as the world has it. Its addresses are those that its node's agent wrote before the pod ran, else those
// of its status.
func Pod(o *corev1.Pod) *world.Pod {
	ips, told := podIPs(o)
	probed, tooMany := probePorts(o)
	open, unreadable := openPorts(o.Annotations[v1.AnnotationOpenDefaultPorts])
	return &world.Pod{
		Namespace: o.Namespace, Name: o.Name, UID: kubeletUID(o), Node: o.Spec.NodeName, Labels: o.Labels,
		Created: o.CreationTimestamp.Time, Terminating: o.DeletionTimestamp != nil,
		IPs: ips, Confirmed: told, HostNetwork: o.Spec.HostNetwork, Running: o.Status.Phase == corev1.PodRunning,
		Completed: o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed,
		HostPorts: hostPorts(o), ProbePorts: probed,
		Further:   furtherInterfaces(o.Namespace, o.Annotations[v1.AnnotationPodNetworks]),
		OpenPorts: open, PortProblems: portProblems(tooMany, unreadable),
	}
}

// maxHostPorts is the most ports of one pod whose former connections are ended.
const maxHostPorts = 256

// hostPorts returns those of protocols whose connections nothing ends, of all containers. A pod of the host's network
// has its host's ports, and nothing translates them.
func hostPorts(o *corev1.Pod) []world.HostPort {
	var out []world.HostPort
	for _, containers := range [][]corev1.Container{o.Spec.InitContainers, o.Spec.Containers} {
		for _, c := range containers {
			for _, p := range c.Ports {
				endless := p.Protocol == corev1.ProtocolUDP || p.Protocol == corev1.ProtocolSCTP
				if p.HostPort <= 0 || !endless || o.Spec.HostNetwork || len(out) == maxHostPorts {
					continue
				}
				ip, _ := netip.ParseAddr(p.HostIP)
				out = append(out, world.HostPort{Protocol: strings.ToLower(string(p.Protocol)), IP: ip.Unmap(),
					Port: uint16(p.HostPort), To: uint16(p.ContainerPort)})
			}
		}
	}
	return out
}

// kubeletUID is the UID that the kubelet gives the CNI plugin. A static pod has one that the kubelet made, and what the
// API has is its mirror, with a UID of its own.
func kubeletUID(o *corev1.Pod) string {
	if own := o.Annotations[corev1.MirrorPodAnnotationKey]; own != "" {
		return own
	}
	return string(o.UID)
}

// podNetwork is what pod-networks says of one network.
type podNetwork struct {
	IPAddresses []string `json:"ip_addresses"`
	MACAddress  string   `json:"mac_address,omitempty"`
	GatewayIPs  []string `json:"gateway_ips,omitempty"`
	Role        string   `json:"role,omitempty"`
	// Network is its name, which the key of an entry, a definition, does not say.
	Network string `json:"network,omitempty"`
}

// podIPs are a pod's addresses. told: its status says them.
func podIPs(o *corev1.Pod) (ips []netip.Addr, told bool) {
	list := []string{o.Status.PodIP}
	for _, ip := range o.Status.PodIPs {
		list = append(list, ip.IP)
	}
	status, _ := parseAddrs(list) // an entry that is not an address cannot be a packet's source
	ips = annotatedIPs(o.Annotations[v1.AnnotationPodNetworks])
	if len(ips) == 0 {
		return status, true
	}
	return ips, !slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !slices.Contains(status, ip) })
}

func annotatedIPs(text string) []netip.Addr {
	var own podNetwork
	if ofDefault(text, &own) != nil {
		return nil
	}
	return own.readIPs()
}

// PodAnnotations are those that a node's agent writes on a pod before its network is up: its addresses with their
// lengths, its MAC and its gateways.
func PodAnnotations(ips []netip.Prefix, mac string, gateways []netip.Addr) map[string]string {
	n := podNetwork{MACAddress: mac, Role: "primary"}
	for _, p := range ips {
		n.IPAddresses = append(n.IPAddresses, p.String())
	}
	for _, a := range gateways {
		n.GatewayIPs = append(n.GatewayIPs, a.String())
	}
	return map[string]string{v1.AnnotationPodNetworks: toJSON(map[string]podNetwork{ref.DefaultNetwork: n})}
}
