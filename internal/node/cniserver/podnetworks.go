package cniserver

import (
	"net/netip"

	"github.com/egret-net/egret/internal/node/cniserver/podlink"
	"github.com/egret-net/egret/internal/node/ipam"
	"github.com/egret-net/egret/internal/ref"
)

// PodNetworks is the annotation k8s.ovn.org/pod-networks: a pod's addresses by network, as OVN-Kubernetes writes them.
type PodNetworks map[string]PodNetwork

// PodNetwork is a pod's addresses in one network. IPAddress and Gateway repeat a single address for older readers.
type PodNetwork struct {
	IPs       []string   `json:"ip_addresses"` // with the subnet's length: 10.244.1.5/24
	MAC       string     `json:"mac_address"`
	Gateways  []string   `json:"gateway_ips,omitempty"`
	IPAddress string     `json:"ip_address,omitempty"`
	Gateway   string     `json:"gateway_ip,omitempty"`
	Role      string     `json:"role,omitempty"`
	Routes    []PodRoute `json:"routes,omitempty"`
	// Network is the network's name, which the key of an entry that is not the default network's does not say.
	Network string `json:"network,omitempty"`
}

// PodRoute is a way that a pod has beside its default route.
type PodRoute struct {
	To  string `json:"dest"`
	Via string `json:"nextHop"`
}

// Roles of a network for a pod.
const (
	rolePrimary = "primary"
	roleLocked  = "infrastructure-locked" // the kubelet's probes, and little else
)

// NetworkStatus is an entry of the annotation k8s.v1.cni.cncf.io/network-status: an interface of a pod, as Multus
// describes it.
type NetworkStatus struct {
	Name      string       `json:"name"` // of the CNI configuration
	Interface string       `json:"interface"`
	IPs       []netip.Addr `json:"ips"`
	MAC       string       `json:"mac"`
	Default   bool         `json:"default,omitempty"` // it has the pod's default route
	DNS       struct{}     `json:"dns"`
}

// configName is what OVN-Kubernetes calls its CNI configuration, by which programs know its entries.
const configName = "ovn-kubernetes"

// NetworkStatus returns the interfaces of a pod that has its namespace's own network. It returns none for another pod:
// only Multus writes the annotation there.
func (p PodPort) NetworkStatus() []NetworkStatus {
	if p.Primary == nil {
		return nil
	}
	return []NetworkStatus{{Name: configName, Interface: p.IfName, IPs: p.IPs, MAC: p.MAC},
		{Name: configName, Interface: podlink.PrimaryIfName, IPs: p.Primary.IPs, MAC: p.Primary.MAC, Default: true}}
}

func podNetworks(p PodPort, links []podlink.Spec) PodNetworks {
	out := PodNetworks{ref.DefaultNetwork: podNetwork(links[0], rolePrimary)}
	if len(links) > 1 {
		out[ref.DefaultNetwork] = podNetwork(links[0], roleLocked)
		primary := podNetwork(links[1], rolePrimary)
		primary.Network = p.Primary.Network
		out[p.Primary.Definition] = primary
	}
	return out
}

func podNetwork(link podlink.Spec, role string) PodNetwork {
	n := PodNetwork{MAC: link.MAC.String(), Role: role}
	for _, a := range link.Addrs {
		n.IPs = append(n.IPs, a.String())
	}
	for _, g := range link.Gateways {
		n.Gateways = append(n.Gateways, g.String())
	}
	for _, r := range link.Routes {
		n.Routes = append(n.Routes, PodRoute{To: r.To.String(), Via: r.Via.String()})
	}
	if len(n.IPs) == 1 {
		n.IPAddress = n.IPs[0]
	}
	if len(n.Gateways) == 1 {
		n.Gateway = n.Gateways[0]
	}
	return n
}

// inSubnets gives addresses their subnets' lengths and gateways; false when one is in no subnet.
func inSubnets(subnets []netip.Prefix, ips []netip.Addr) (addrs []netip.Prefix, gateways []netip.Addr, ok bool) {
	for _, ip := range ips {
		for _, s := range subnets {
			if s.Contains(ip) {
				addrs = append(addrs, netip.PrefixFrom(ip, s.Bits()))
				gateways = append(gateways, ipam.Gateway(s))
			}
		}
	}
	return addrs, gateways, len(ips) > 0 && len(addrs) == len(ips)
}
