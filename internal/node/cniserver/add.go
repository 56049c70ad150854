package cniserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/node/cniserver/podlink"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
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
	var network *PrimaryNetwork
	if pod.Network != "" {
		if network, err = s.node.PrimaryNetwork(ctx, r.Pod.Namespace); err != nil {
			return nil, types.NewError(types.ErrTryAgainLater, err.Error(), "")
		}
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
			if result, err := s.repeatAdd(ctx, r, p, network); result != nil || err != nil {
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
	return s.attachPod(ctx, r, pod, network)
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
func (s *Server) repeatAdd(ctx context.Context, r *cni.Request, p PodPort, n *PrimaryNetwork) (*current.Result, error) {
	if peer, err := podlink.PeerName(p.HostIface, r.NetNS); err == nil && peer != "" && peer != r.IfName {
		return nil, types.NewError(types.ErrInvalidEnvironmentVariables,
			fmt.Sprintf("CNI_IFNAME is %q, but the pod has its interface %s of this network: it gets one only",
				r.IfName, peer), "")
	}
	links, ok := s.linkSpecs(p, r, n)
	if !ok || verifyLinks(links) != nil {
		return nil, nil
	}
	if err := s.node.Annotate(ctx, p, podNetworks(p, links)); err != nil {
		return nil, fmt.Errorf("annotate the pod with its addresses: %w", err)
	}
	if err := s.plugPort(ctx, p); err != nil {
		return nil, err
	}
	return resultOf(links), nil
}

func (s *Server) attachPod(ctx context.Context, r *cni.Request, pod PodInfo,
	n *PrimaryNetwork) (*current.Result, error) {
	p, err := s.newPort(ctx, r, pod, n)
	if err != nil {
		s.releaseAddresses(r.ContainerID)
		return nil, err
	}
	links, ok := s.linkSpecs(p, r, n)
	if !ok {
		s.releaseAddresses(r.ContainerID)
		return nil, types.NewError(types.ErrTryAgainLater,
			"the node's pod subnets just changed; the runtime will try again", "")
	}
	if err := s.buildAttachment(ctx, p, links); err != nil {
		s.undoAdd(ctx, p)
		return nil, err
	}
	return resultOf(links), nil
}

// newPort is a pod's port, or both of its ports, with addresses that nobody else has.
func (s *Server) newPort(ctx context.Context, r *cni.Request, pod PodInfo, n *PrimaryNetwork) (PodPort, error) {
	ips, err := s.allocateAddresses(ctx, ref.DefaultNetwork, s.node.Subnets(), r.ContainerID)
	if err != nil {
		return PodPort{}, err
	}
	p := PodPort{
		Bridge: plan.IntegrationBridge, HostIface: podlink.HostName(r.ContainerID),
		IfaceID:   plan.DefaultNames().PodPort(r.Pod.Namespace, r.Pod.Name),
		SandboxID: r.ContainerID,
		Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: pod.UID, NetNS: r.NetNS, IfName: r.IfName,
		MAC: podlink.HardwareAddr(ips).String(), IPs: ips,
	}
	if n == nil {
		return p, nil
	}
	if ips, err = s.allocateAddresses(ctx, n.Network, n.Subnets, r.ContainerID); err != nil {
		return PodPort{}, fmt.Errorf("network %s: %w", n.Network, err)
	}
	p.Primary = &PrimaryPort{HostIface: podlink.PrimaryHostName(r.ContainerID), Network: n.Network,
		Definition: n.Definition, IfaceID: n.PodPort(r.Pod.Namespace, r.Pod.Name),
		MAC: podlink.HardwareAddr(ips).String(), IPs: ips}
	return p, nil
}

// buildAttachment does all that can be done at the same time: the annotation, the pod's ends of the veths, the ports
// and the plan.
func (s *Server) buildAttachment(ctx context.Context, p PodPort, links []podlink.Spec) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.node.Annotate(ctx, p, podNetworks(p, links)); err != nil {
			return fmt.Errorf("annotate the pod with its addresses: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		for _, link := range links {
			if err := podlink.Create(link); err != nil {
				return err
			}
			group.Go(func() error { return podlink.Configure(link) })
		}
		return s.plugPort(ctx, p)
	})
	return group.Wait()
}

// plugPort makes the ports and returns when packets can pass.
func (s *Server) plugPort(ctx context.Context, p PodPort) error {
	if err := s.attachments.AddPodPort(ctx, p); err != nil {
		return fmt.Errorf("add port %s to %s: %w", p.HostIface, p.Bridge, err)
	}
	if err := s.node.Attached(ctx, p); err != nil {
		return fmt.Errorf("attach the pod, see the agent's log: %w", err)
	}
	return s.waitInstalled(ctx, p)
}

func (s *Server) waitInstalled(ctx context.Context, p PodPort) error {
	for _, name := range p.hostIfaces() {
		if err := s.attachments.WaitInstalled(ctx, name); err != nil {
			return fmt.Errorf("flows of port %s are not installed, is ovn-controller running? %w", name, err)
		}
	}
	return nil
}
