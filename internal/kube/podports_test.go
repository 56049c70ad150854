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

// TestOpenPorts: an annotation with a part that cannot be read opens nothing.
func TestOpenPorts(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "[]",
		"- {protocol: tcp, port: 80}": "[{tcp 80}]",
		"- protocol: icmp":            "[{icmp 0}]",
		"[{protocol: tcp, port: 80}, {protocol: tcp, port: 9}, {protocol: tcp, port: 80}]":  "[{tcp 9} {tcp 80}]",
		"[{protocol: udp, port: 53}, {protocol: tcp, port: 80}, {protocol: sctp, port: 7}]": "[{sctp 7} {tcp 80} {udp 53}]",
		"[{protocol: tcp, port: 80}, {protocol: tcp, port: 70000}]":                         "[]",
		"[{protocol: tcp, port: 80}, {protocol: tcp}]":                                      "[]",
		"[{protocol: tcp, port: 80}, {protocol: udp, port: 0}]":                             "[]",
		"[{protocol: tcp, port: 80}, {protocol: icmp, port: 8}]":                            "[]",
		"[{protocol: tcp, port: 80}, {protocol: gre, port: 1}]":                             "[]",
		"[{protocol: tcp, port: 80, host: x}]":                                              "[]",
		"[{protocol: tcp, port: -1}]":                                                       "[]",
		"tcp: 80":                                                                           "[]",
		"[" + strings.Repeat("{protocol: tcp, port: 80},", 65) + "]":                        "[]",
		strings.Repeat(" ", 9000) + "- {protocol: tcp, port: 80}":                           "[]",
	} {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{v1.AnnotationOpenDefaultPorts: text}}}
		if have := fmt.Sprint(kube.Pod(o).OpenPorts); have != want {
			t.Errorf("%.60q: have %s, want %s", text, have, want)
		}
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
