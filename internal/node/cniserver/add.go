package cniserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/node/cniserver/podlink"
	"github.com/egret-net/egret/internal/plan"
)

// addPod attaches a pod. The same call again gives the same answer.
func (s *Server) addPod(ctx context.Context, r *cni.Request) (*current.Result, error) {
	if err := s.node.Ready(); err != nil {
		return nil, types.NewError(types.ErrTryAgainLater,
			"Egret cannot attach pods on this node yet; the runtime will try again", err.Error())
	}
	pod, err := s.lookUpPod(ctx, r.Pod)
	if err != nil {
		return nil, err
	}
	unlock, err := s.pods.lockKey(ctx, r.Pod.Namespace+"/"+r.Pod.Name)
	if err != nil {
		return nil, fmt.Errorf("wait for another call for this pod: %w", err)
	}
	defer unlock()
	ports, err := s.attachments.PodPorts(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range ports {
		if p.SandboxID == r.ContainerID {
			if result, err := s.repeatAdd(ctx, r, p); result != nil || err != nil {
				return result, err
			}
		}
		// Remains of the pod's previous sandbox, or of a previous pod of that name, have the same logical port.
		if p.Namespace == r.Pod.Namespace && p.Name == r.Pod.Name {
			if err := s.detachPod(ctx, p); err != nil {
				return nil, fmt.Errorf("remove the pod's former interface %s: %w", p.HostIface, err)
			}
		}
	}
	return s.attachPod(ctx, r, pod)
}

func (s *Server) lookUpPod(ctx context.Context, want cni.Pod) (PodInfo, error) {
	pod, err := s.node.Pod(ctx, want.Namespace, want.Name, want.UID)
	if err != nil {
		return PodInfo{}, fmt.Errorf("look up pod %s/%s: %w", want.Namespace, want.Name, err)
	}
	if want.UID != "" && pod.UID != want.UID {
		return PodInfo{}, fmt.Errorf("pod %s/%s has UID %s now, and %s was asked for: it was deleted and made anew, "+
			"the kubelet will notice",
			want.Namespace, want.Name, pod.UID, want.UID)
	}
	if pod.HostNetwork {
		return PodInfo{}, fmt.Errorf("pod %s/%s is of the host network and gets no interface: this is an error of "+
			"the runtime", want.Namespace, want.Name)
	}
	if pod.Refused != "" {
		return PodInfo{}, errors.New(pod.Refused)
	}
	return pod, nil
}

// repeatAdd answers a repeated ADD; a nil result means that the attachment is not whole and the pod must be attached
// again.
func (s *Server) repeatAdd(ctx context.Context, r *cni.Request, p PodPort) (*current.Result, error) {
	if peer, err := podlink.PeerName(p.HostIface, r.NetNS); err == nil && peer != "" && peer != r.IfName {
		return nil, types.NewError(types.ErrInvalidEnvironmentVariables,
			fmt.Sprintf("CNI_IFNAME is %q, but the pod has its interface %s of this network: it gets one only",
				r.IfName, peer), "")
	}
	link, ok := s.linkSpec(p, r)
	if !ok || podlink.Verify(link) != nil {
		return nil, nil
	}
	if err := s.node.Annotate(ctx, p.Namespace, p.Name, p.UID, podNetworks(link)); err != nil {
		return nil, fmt.Errorf("annotate the pod with its addresses: %w", err)
	}
	if err := s.plugPort(ctx, p); err != nil {
		return nil, err
	}
	return resultOf(link), nil
}

func (s *Server) attachPod(ctx context.Context, r *cni.Request, pod PodInfo) (*current.Result, error) {
	ips, err := s.allocateAddresses(ctx, r.ContainerID)
	if err != nil {
		return nil, err
	}
	p := PodPort{
		Bridge: plan.IntegrationBridge, HostIface: podlink.HostName(r.ContainerID),
		IfaceID:   plan.DefaultNames().PodPort(r.Pod.Namespace, r.Pod.Name),
		SandboxID: r.ContainerID,
		Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: pod.UID, NetNS: r.NetNS, IfName: r.IfName,
		MAC: podlink.HardwareAddr(ips).String(), IPs: ips,
	}
	link, ok := s.linkSpec(p, r)
	if !ok {
		s.releaseAddresses(r.ContainerID)
		return nil, types.NewError(types.ErrTryAgainLater,
			"the node's pod subnets just changed; the runtime will try again", "")
	}
	if err := s.buildAttachment(ctx, p, link); err != nil {
		s.undoAdd(ctx, p)
		return nil, err
	}
	return resultOf(link), nil
}

// buildAttachment does all that can be done at the same time: the annotation, the pod's end of the veth, the port and
// the plan.
func (s *Server) buildAttachment(ctx context.Context, p PodPort, link podlink.Spec) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.node.Annotate(ctx, p.Namespace, p.Name, p.UID, podNetworks(link)); err != nil {
			return fmt.Errorf("annotate the pod with its addresses: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		if err := podlink.Create(link); err != nil {
			return err
		}
		group.Go(func() error { return podlink.Configure(link) })
		return s.plugPort(ctx, p)
	})
	return group.Wait()
}

// plugPort makes the port and returns when packets can pass.
func (s *Server) plugPort(ctx context.Context, p PodPort) error {
	if err := s.attachments.AddPodPort(ctx, p); err != nil {
		return fmt.Errorf("add port %s to %s: %w", p.HostIface, p.Bridge, err)
	}
	if err := s.node.Attached(ctx, p); err != nil {
		return fmt.Errorf("attach the pod, see the agent's log: %w", err)
	}
	if err := s.attachments.WaitInstalled(ctx, p.HostIface); err != nil {
		return fmt.Errorf("wait for ovn-controller to install the pod's flows, is it running? %w", err)
	}
	return nil
}

// linkSpec is what the interface of an attachment must be; false when its addresses are not of the node's subnets.
func (s *Server) linkSpec(p PodPort, r *cni.Request) (podlink.Spec, bool) {
	addrs, gateways, ok := inSubnets(s.node.Subnets(), p.IPs)
	mac, err := net.ParseMAC(p.MAC)
	return podlink.Spec{
		HostIface: p.HostIface, NetNS: r.NetNS, IfName: r.IfName, MAC: mac, MTU: s.node.MTU(),
		Addrs: addrs, Gateways: gateways, ChecksumInSoftware: s.node.UserspaceDatapath(),
	}, ok && err == nil
}

func resultOf(link podlink.Spec) *current.Result {
	inPod := 1 // index in Interfaces
	r := &current.Result{
		CNIVersion: current.ImplementedSpecVersion,
		Interfaces: []*current.Interface{
			{Name: link.HostIface, Mtu: link.MTU},
			{Name: link.IfName, Mac: link.MAC.String(), Mtu: link.MTU, Sandbox: link.NetNS},
		},
	}
	for i, a := range link.Addrs {
		gateway := net.IP(link.Gateways[i].AsSlice())
		r.IPs = append(r.IPs, &current.IPConfig{Interface: &inPod, Address: ipNet(a), Gateway: gateway})
		r.Routes = append(r.Routes, &types.Route{Dst: ipNet(defaultDestination(a.Addr())), GW: gateway})
	}
	return r
}

func defaultDestination(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
