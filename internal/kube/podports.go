package kube

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/egret-net/egret/internal/world"
)

// maxPorts is the most ports that one pod's probes, or its annotation, open. maxOpenPortsText is the longest
// annotation.
const (
	maxPorts         = 64
	maxOpenPortsText = 8192
)

// probePorts returns the ports that the kubelet connects to, for probes and hooks of all containers, sorted and without
// duplicates. A probe that names a host is not about the pod's ports.
func probePorts(o *corev1.Pod) []uint16 {
	if o.Spec.HostNetwork {
		return nil
	}
	var out []uint16
	for _, containers := range [][]corev1.Container{o.Spec.InitContainers, o.Spec.Containers} {
		for i := range containers {
			for _, port := range containerProbes(&containers[i]) {
				out = append(out, numberOf(port, &containers[i])...)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxPorts)]
}

// containerProbes returns the ports of a container's probes and hooks.
func containerProbes(c *corev1.Container) (out []intstr.IntOrString) {
	http := func(g *corev1.HTTPGetAction) {
		if g != nil && g.Host == "" {
			out = append(out, g.Port)
		}
	}
	tcp := func(s *corev1.TCPSocketAction) {
		if s != nil && s.Host == "" {
			out = append(out, s.Port)
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		http(p.HTTPGet)
		tcp(p.TCPSocket)
		if p.GRPC != nil {
			out = append(out, intstr.FromInt32(p.GRPC.Port))
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				http(h.HTTPGet)
				tcp(h.TCPSocket)
			}
		}
	}
	return out
}

// numberOf returns a port's number, or nothing where the port names no port of the container.
func numberOf(port intstr.IntOrString, c *corev1.Container) []uint16 {
	number := port.IntVal
	if port.Type == intstr.String {
		i := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
		if i < 0 {
			return nil
		}
		number = c.Ports[i].ContainerPort
	}
	if !isPort(number) {
		return nil
	}
	return []uint16{uint16(number)}
}

// openPorts reads the annotation, sorted and without duplicates. All ports stay closed if a part of it cannot be read.
func openPorts(text string) []world.OpenPort {
	var list []struct {
		Protocol string `json:"protocol"`
		Port     *int32 `json:"port"`
	}
	if text == "" || len(text) > maxOpenPortsText || yaml.UnmarshalStrict([]byte(text), &list) != nil ||
		len(list) > maxPorts {
		return nil
	}
	var out []world.OpenPort
	for _, p := range list {
		switch p.Protocol {
		case "tcp", "udp", "sctp":
			if p.Port == nil || !isPort(*p.Port) {
				return nil
			}
			out = append(out, world.OpenPort{Protocol: p.Protocol, Port: uint16(*p.Port)})
		case "icmp":
			if p.Port != nil {
				return nil
			}
			out = append(out, world.OpenPort{Protocol: p.Protocol})
		default:
			return nil
		}
	}
	slices.SortFunc(out, func(a, b world.OpenPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(out)
}
