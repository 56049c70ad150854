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
	IPs       []string `json:"ip_addresses"` // with the subnet's length: 10.244.1.5/24
	MAC       string   `json:"mac_address"`
	Gateways  []string `json:"gateway_ips,omitempty"`
	IPAddress string   `json:"ip_address,omitempty"`
	Gateway   string   `json:"gateway_ip,omitempty"`
	Role      string   `json:"role,omitempty"`
}

func podNetworks(link podlink.Spec) PodNetworks {
	n := PodNetwork{MAC: link.MAC.String(), Role: "primary"}
	for _, a := range link.Addrs {
		n.IPs = append(n.IPs, a.String())
	}
	for _, g := range link.Gateways {
		n.Gateways = append(n.Gateways, g.String())
	}
	if len(n.IPs) == 1 {
		n.IPAddress, n.Gateway = n.IPs[0], n.Gateways[0]
	}
	return PodNetworks{ref.DefaultNetwork: n}
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
