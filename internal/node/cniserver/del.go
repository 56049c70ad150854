package cniserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/node/cniserver/podlink"
)

// undoTimeout bounds the cleaning up after a call that failed, whose own time may be over.
const undoTimeout = 10 * time.Second

// deletePod detaches a container. A DEL of another interface than the container has is of an ADD that was refused,
// which runtimes clean up after (CNI specification 1.1.0, section 2, ADD), and changes nothing. The interface's present
// name in the pod does not count: KubeVirt gives it another name.
func (s *Server) deletePod(ctx context.Context, r *cni.Request) error {
	ports, err := s.portsWhere(ctx, func(p PodPort) bool { return p.SandboxID == r.ContainerID })
	if err != nil {
		return err
	}
	if slices.ContainsFunc(ports, func(p PodPort) bool { return p.IfName != "" && p.IfName != r.IfName }) {
		return nil
	}
	if len(ports) > 0 {
		return s.detachAll(ctx, ports)
	}
	link, err := podlink.Exists(podlink.HostName(r.ContainerID))
	if err != nil {
		return err
	}
	if !link && !s.holdsAddresses(r.ContainerID) {
		return nil
	}
	return s.detachPod(ctx, PodPort{SandboxID: r.ContainerID, Namespace: r.Pod.Namespace, Name: r.Pod.Name,
		UID: r.Pod.UID})
}

// collectGarbage removes every attachment that is not in the list (GC). All interfaces of a container are of one
// attachment, so its ID is enough.
func (s *Server) collectGarbage(ctx context.Context, valid []types.GCAttachment) error {
	keep := map[string]bool{}
	for _, a := range valid {
		keep[a.ContainerID] = true
	}
	ports, err := s.portsWhere(ctx, func(p PodPort) bool { return !keep[p.SandboxID] })
	if err != nil {
		return err
	}
	return s.detachAll(ctx, ports)
}

// ReleaseCompleted detaches a pod whose containers have all ended for good, so that its addresses are free again before
// the kubelet removes the sandbox.
func (s *Server) ReleaseCompleted(ctx context.Context, namespace, name, uid string) error {
	ports, err := s.portsWhere(ctx, func(p PodPort) bool {
		return p.Namespace == namespace && p.Name == name && p.UID == uid
	})
	if err != nil {
		return err
	}
	return s.detachAll(ctx, ports)
}

// Sweep detaches pods whose veth is gone, as after a reboot of the node. A network namespace takes its veth with it, so
// a missing path of the namespace is no further evidence; it may only be out of the agent's sight.
func (s *Server) Sweep(ctx context.Context) error {
	var failed []error
	ports, err := s.portsWhere(ctx, func(p PodPort) bool {
		there, err := podlink.Exists(p.HostIface)
		failed = append(failed, err)
		return err == nil && !there
	})
	if err != nil {
		return err
	}
	for _, p := range ports {
		s.log.Info("pod's interface is gone; removing its port", "namespace", p.Namespace, "pod", p.Name, "interface",
			p.HostIface)
	}
	return errors.Join(append(failed, s.detachAll(ctx, ports))...)
}

// Seal keeps the node's own stack off all pods' interfaces, also where something has set their sysctls again since.
func (s *Server) Seal(ctx context.Context) error {
	ports, err := s.attachments.PodPorts(ctx)
	failed := []error{err}
	for _, p := range ports {
		for _, name := range p.hostIfaces() {
			failed = append(failed, podlink.Seal(name))
		}
	}
	return errors.Join(failed...)
}

// portsWhere are all attachments of which match says so, and those that are half taken away.
func (s *Server) portsWhere(ctx context.Context, match func(PodPort) bool) ([]PodPort, error) {
	all, err := s.attachments.PodPorts(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	half := maps.Clone(s.half)
	s.mu.Unlock()
	for _, p := range all {
		delete(half, p.SandboxID)
	}
	var ports []PodPort
	for _, p := range slices.AppendSeq(all, maps.Values(half)) {
		if match(p) {
			ports = append(ports, p)
		}
	}
	return ports, nil
}

// detachAll detaches each, in its pod's turn; one that fails does not stop the others.
func (s *Server) detachAll(ctx context.Context, ports []PodPort) error {
	var failed []error
	for _, p := range ports {
		unlock, err := s.pods.lockKey(ctx, p.Namespace+"/"+p.Name)
		if err == nil {
			err = s.detachPod(ctx, p)
			unlock()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("detach pod %s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	return errors.Join(failed...)
}

// detachPod takes an attachment away, of which it needs the container. A call that failed is simply made again, and
// what it left is not forgotten.
func (s *Server) detachPod(ctx context.Context, p PodPort) error {
	err := s.takeAway(ctx, p)
	if err == nil {
		s.releaseAddresses(p.SandboxID)
		return nil
	}
	s.mu.Lock()
	s.half[p.SandboxID] = p
	s.mu.Unlock()
	return err
}

// takeAway removes a container's ports, the plan's rows and the veths. Only then are the addresses free: nobody gets
// them while something of the former owner is left. Each step is idempotent, and the default network's is the last: by
// it a container is found again.
func (s *Server) takeAway(ctx context.Context, p PodPort) error {
	own := podlink.HostName(p.SandboxID)
	ports := []string{own}
	if p.Primary != nil {
		ports = []string{p.Primary.HostIface, own}
	}
	for _, name := range ports {
		if err := s.attachments.DelPodPort(ctx, name); err != nil {
			return fmt.Errorf("remove port %s: %w", name, err)
		}
	}
	if err := s.node.Detached(ctx, own); err != nil {
		return fmt.Errorf("remove the pod's rows, see the agent's log: %w", err)
	}
	for _, name := range []string{podlink.PrimaryHostName(p.SandboxID), own} {
		if err := podlink.Delete(name); err != nil {
			return err
		}
	}
	return nil
}

// undoAdd cleans up after an ADD that failed. The annotation goes too: the addresses may be another pod's next.
func (s *Server) undoAdd(ctx context.Context, p PodPort) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	log := s.log.With("namespace", p.Namespace, "pod", p.Name, "interface", p.HostIface)
	if err := s.node.Annotate(ctx, p, nil); err != nil {
		log.Warn("the annotation of a pod that was not attached stays", "error", err)
	}
	if err := s.detachPod(ctx, p); err != nil {
		log.Warn("a failed attachment is not cleaned up; DEL will try again", "error", err)
	}
}
