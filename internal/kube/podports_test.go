package kube_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

// TestOpenPorts: an annotation with a part that cannot be read opens nothing, and the Pod has a problem that says which
// part.
func TestOpenPorts(t *testing.T) {
	const noPort = "has no port from 1 to 65535"
	for text, want := range map[string]struct{ open, problem string }{
		"":                            {open: "[]"},
		"[]":                          {open: "[]"},
		"- {protocol: tcp, port: 80}": {open: "[{tcp 80}]"},
		"- protocol: icmp":            {open: "[{icmp 0}]"},
		"[{protocol: tcp, port: 80}, {protocol: tcp, port: 9}, {protocol: tcp, port: 80}]": {
			open: "[{tcp 9} {tcp 80}]"},
		"[{protocol: udp, port: 53}, {protocol: tcp, port: 80}, {protocol: sctp, port: 7}]": {
			open: "[{sctp 7} {tcp 80} {udp 53}]"},
		"[{protocol: tcp, port: 80}, {protocol: tcp, port: 70000}]":  {"[]", "entry 2 " + noPort},
		"[{protocol: tcp, port: 80}, {protocol: tcp}]":               {"[]", "entry 2 " + noPort},
		"[{protocol: tcp, port: 80}, {protocol: udp, port: 0}]":      {"[]", "entry 2 " + noPort},
		"[{protocol: tcp, port: -1}]":                                {"[]", "entry 1 " + noPort},
		"[{protocol: tcp, port: 80}, {protocol: icmp, port: 8}]":     {"[]", "entry 2 has a port, and icmp"},
		"[{protocol: gre, port: 1}, {protocol: tcp, port: 80}]":      {"[]", `entry 1 has protocol "gre"`},
		"[{protocol: tcp, port: 80, host: x}]":                       {"[]", "is no list of protocols"},
		"tcp: 80":                                                    {"[]", "is no list of protocols"},
		"[" + strings.Repeat("{protocol: tcp, port: 80},", 65) + "]": {"[]", "has 65 entries, more than 64"},
		strings.Repeat(" ", 9000) + "- {protocol: tcp, port: 80}":    {"[]", "has 9027 characters, more than"},
	} {
		p := kube.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{v1.AnnotationOpenDefaultPorts: text}}})
		if have := fmt.Sprint(p.OpenPorts); have != want.open {
			t.Errorf("%.60q: have %s, want %s", text, have, want.open)
		}
		says, problems := "annotation k8s.ovn.org/open-default-ports "+want.problem, strings.Join(p.PortProblems, "; ")
		if want.problem == "" && problems != "" || want.problem != "" && !strings.HasPrefix(problems, says) {
			t.Errorf("%.60q: problems %q, want %q", text, problems, want.problem)
		}
	}
}

// TestTooManyProbePorts: the ports of probes beyond the most that one pod opens are left out, and the Pod says so.
func TestTooManyProbePorts(t *testing.T) {
	o := &corev1.Pod{}
	for i := range int32(65) {
		if have := kube.Pod(o); len(have.ProbePorts) != int(i) || have.PortProblems != nil {
			t.Fatalf("with %d probes: %d ports, problems %q", i, len(have.ProbePorts), have.PortProblems)
		}
		o.Spec.Containers = append(o.Spec.Containers, corev1.Container{LivenessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8000 + i}}}})
	}
	have := kube.Pod(o)
	if len(have.ProbePorts) != 64 || len(have.PortProblems) != 1 ||
		!strings.Contains(have.PortProblems[0], "use 65 ports: its kubelet reaches only the first 64, up to port 8063") {
		t.Errorf("%d ports, problems %q", len(have.ProbePorts), have.PortProblems)
	}
	o.Spec.HostNetwork = true
	if have := kube.Pod(o); have.PortProblems != nil {
		t.Errorf("a pod of the host's network: %q", have.PortProblems)
	}
}

// TestProbePorts: ports of probes and hooks count, by number or by name, unless a host is named.
func TestProbePorts(t *testing.T) {
	probe := func(h corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: h} }
	http := func(host string, port intstr.IntOrString) *corev1.HTTPGetAction {
		return &corev1.HTTPGetAction{Host: host, Port: port}
	}
	o := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{StartupProbe: probe(
			corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 7}})}},
		Containers: []corev1.Container{{
			Ports:          []corev1.ContainerPort{{Name: "web", ContainerPort: 80}},
			LivenessProbe:  probe(corev1.ProbeHandler{HTTPGet: http("", intstr.FromString("web"))}),
			ReadinessProbe: probe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(81)}}),
			StartupProbe:   probe(corev1.ProbeHandler{HTTPGet: http("", intstr.FromString("other"))}),
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: http("", intstr.FromInt32(82))},
				PostStart: &corev1.LifecycleHandler{HTTPGet: http("192.0.2.1", intstr.FromInt32(83))}},
		}, {LivenessProbe: probe(corev1.ProbeHandler{HTTPGet: http("", intstr.FromInt32(70000))})}},
	}}
	if have := fmt.Sprint(kube.Pod(o).ProbePorts); have != "[7 80 81 82]" {
		t.Errorf("have %s", have)
	}
	o.Spec.HostNetwork = true
	if have := kube.Pod(o).ProbePorts; have != nil {
		t.Errorf("of a pod of the host: %v", have)
	}
}
