package cniserver

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"

	"github.com/egret-net/egret/internal/cni"
)

// checkTimeout bounds the wait for ovn-installed, which an attached pod has already.
const checkTimeout = time.Second

// checkPod compares a container's port, interface and flows with what ADD answered.
func (s *Server) checkPod(ctx context.Context, r *cni.Request) error {
	ports, err := s.portsWhere(ctx, func(p PodPort) bool { return p.SandboxID == r.ContainerID })
	if err != nil {
		return err
	}
	if len(ports) == 0 {
		return types.NewError(types.ErrUnknownContainer,
			fmt.Sprintf("container %s has no port in Open vSwitch: delete the pod", r.ContainerID), "")
	}
	p := ports[0]
	if err := sameAddresses(r, p); err != nil {
		return err
	}
	var network *PrimaryNetwork
	if p.Primary != nil {
		if network, err = s.node.PrimaryNetwork(ctx, p.Namespace); err != nil {
			return err
		}
	}
	links, ok := s.linkSpecs(p, r, network)
	if !ok {
		return fmt.Errorf("addresses %v of the pod are not in the node's subnets %v: delete the pod", p.allIPs(),
			s.node.Subnets())
	}
	if err := verifyLinks(links); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.waitInstalled(ctx, p)
}

// sameAddresses compares the port's addresses with those of the previous result.
func sameAddresses(r *cni.Request, p PodPort) error {
	generic, err := create.CreateFromBytes(r.PrevResult)
	if err != nil {
		return types.NewError(types.ErrInvalidNetworkConfig,
			`network configuration, field "prevResult": cannot be read`, err.Error())
	}
	previous, err := current.NewResultFromResult(generic)
	if err != nil {
		return types.NewError(types.ErrInvalidNetworkConfig,
			`network configuration, field "prevResult": cannot be converted`, err.Error())
	}
	var want []netip.Addr
	for _, ip := range previous.IPs {
		if a, ok := netip.AddrFromSlice(ip.Address.IP); ok {
			want = append(want, a.Unmap())
		}
	}
	have := p.allIPs()
	slices.SortFunc(want, netip.Addr.Compare)
	slices.SortFunc(have, netip.Addr.Compare)
	if !slices.Equal(want, have) {
		return fmt.Errorf("the pod has addresses %v, and ADD gave it %v: delete the pod", have, want)
	}
	return nil
}
