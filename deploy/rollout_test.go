package deploy_test

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestRolloutsStop: of programs that do not become ready, or do not stay so, a rollout replaces one.
func TestRolloutsStop(t *testing.T) {
	seen := 0
	for _, object := range decodeAll(t, os.DirFS("cluster"), "*.yaml") {
		switch o := object.(type) {
		case *appsv1.Deployment:
			seen++
			r := o.Spec.Strategy.RollingUpdate
			checkRollout(t, o.Name, o.Spec.MinReadySeconds, r.MaxUnavailable.IntValue(), o.Spec.Template.Spec)
		case *appsv1.DaemonSet:
			if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
				continue // nothing is replaced by itself
			}
			seen++
			r := o.Spec.UpdateStrategy.RollingUpdate
			checkRollout(t, o.Name, o.Spec.MinReadySeconds, r.MaxUnavailable.IntValue(), o.Spec.Template.Spec)
		}
	}
	if seen != 2 {
		t.Errorf("%d programs are replaced by rollouts, want agents and controllers", seen)
	}
}

func checkRollout(t *testing.T, name string, seconds int32, atOnce int, p corev1.PodSpec) {
	t.Helper()
	alive, ready := p.Containers[0].LivenessProbe, p.Containers[0].ReadinessProbe
	if ready == nil || ready.HTTPGet == nil {
		t.Errorf("%s has no readiness probe: a rollout goes on over programs that cannot work", name)
		return
	}
	if g := *ready.HTTPGet; g.Path != "/readyz" || g.Host != alive.HTTPGet.Host || g.Port != alive.HTTPGet.Port {
		t.Errorf("%s is asked whether it is ready at %+v", name, g)
	}
	if ready.TimeoutSeconds != alive.TimeoutSeconds {
		t.Errorf("%s has %d s to say whether it is ready, and %d s whether it lives", name, ready.TimeoutSeconds,
			alive.TimeoutSeconds)
	}
	if seconds < 10 || atOnce != 1 {
		t.Errorf("%s: %d at once, each ready for %d s before the next", name, atOnce, seconds)
	}
}

// TestPortsHaveNames: the addresses that programs serve on are ports of their pods, with the names that monitoring asks
// for.
func TestPortsHaveNames(t *testing.T) {
	for _, name := range []string{"egret-controller", "egret-node"} {
		c := pods(t)[name].Containers[0]
		names := map[string]string{}
		for _, p := range c.Ports {
			names[strconv.Itoa(int(p.ContainerPort))] = p.Name
		}
		for flag, want := range map[string]string{"--metrics-bind-address=": "metrics",
			"--healthz-bind-address=": "health"} {
			i := slices.IndexFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, flag) })
			_, port, err := net.SplitHostPort(strings.TrimPrefix(c.Args[i], flag))
			must(t, err)
			if names[port] != want {
				t.Errorf("port %s of %s has the name %q, want %q", port, name, names[port], want)
			}
		}
	}
}
