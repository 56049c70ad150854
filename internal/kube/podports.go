package kube

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// maxPorts is the most ports that one pod's probes, or its annotation, open. maxOpenPortsText is the longest
// annotation.
const (
	maxPorts         = 64
	maxOpenPortsText = 8192
)

// probePorts returns the ports that the kubelet connects to, for probes and hooks of all containers, sorted and without
// duplicates. A probe that names a host is not about the pod's ports. The error says that some ports are left out.
func probePorts(o *corev1.Pod) ([]uint16, error) {
	if o.Spec.HostNetwork {
		return nil, nil
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
	if len(out) <= maxPorts {
		return out, nil
	}
	return out[:maxPorts], fmt.Errorf("probes and hooks of the pod use %d ports: its kubelet reaches only the first %d, "+
		"up to port %d. Use fewer ports", len(out), maxPorts, out[maxPorts-1])
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
func openPorts(text string) ([]world.OpenPort, error) {
	var list []openPort
	switch {
	case text == "":
		return nil, nil
	case len(text) > maxOpenPortsText:
		return nil, fmt.Errorf("has %d characters, more than %d", len(text), maxOpenPortsText)
	case yaml.UnmarshalStrict([]byte(text), &list) != nil:
		return nil, errors.New("is no list of protocols and ports")
	case len(list) > maxPorts:
		return nil, fmt.Errorf("has %d entries, more than %d", len(list), maxPorts)
	}
	var out []world.OpenPort
	for i, p := range list {
		one, err := p.parseEntry()
		if err != nil {
			return nil, fmt.Errorf("entry %d %w", i+1, err)
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b world.OpenPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(out), nil
}

// openPort is an entry of the annotation.
type openPort struct {
	Protocol string `json:"protocol"`
	Port     *int32 `json:"port"`
}

func (p openPort) parseEntry() (world.OpenPort, error) {
	switch p.Protocol {
	case "tcp", "udp", "sctp":
		if p.Port == nil || !isPort(*p.Port) {
			return world.OpenPort{}, errors.New("has no port from 1 to 65535")
		}
		return world.OpenPort{Protocol: p.Protocol, Port: uint16(*p.Port)}, nil
	case "icmp":
		if p.Port != nil {
			return world.OpenPort{}, errors.New("has a port, and icmp has none")
		}
		return world.OpenPort{Protocol: p.Protocol}, nil
	}
	return world.OpenPort{}, fmt.Errorf("has protocol %q, which is not tcp, udp, sctp or icmp", plainText(p.Protocol))
}

// portProblems says which ports of a pod stay closed, and what to do.
func portProblems(tooMany, unreadable error) (out []string) {
	if unreadable != nil {
		out = append(out, fmt.Sprintf("annotation %s %v: none of its ports is open. "+
			"Write it like [{protocol: tcp, port: 80}, {protocol: icmp}]", v1.AnnotationOpenDefaultPorts, unreadable))
	}
	if tooMany != nil {
		out = append(out, tooMany.Error())
	}
	return out
}
