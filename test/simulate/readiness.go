package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/trace"
)

// unsaid is for how long an object may be Ready while packets of one of its pods are dropped: a question to a holder,
// the report, and the controller's word.
const unsaid = 9 * time.Second

// loss is packets that are dropped while their object is Ready.
type loss struct {
	packet
	late bool // a watch of the pod's node may stand still
}

// judgeReadiness fails the run if an object is Ready for longer than that. A node with a watch that stands still has
// until it lists again. A node whose agent does not run, or is cut off, cannot say what it drops. A node that the
// controllers do not reach, or whose Node is gone, is not waited for.
func (v *verdict) judgeReadiness() {
	now := map[loss]time.Time{}
	for x := range v.dropped {
		late := v.cannotFollow(x.from.on.name)
		if !x.from.sends || v.s.isGone(x.from.on) || !x.from.on.answers() ||
			late && !v.isOnlyLate(x.from.on.name) || v.s.mayBeUnserved(x.from) || !v.s.isReadyFor(x) {
			continue
		}
		l := loss{x, late}
		if now[l] = v.losses[l]; now[l].IsZero() {
			now[l] = v.s.now
		}
		atMost := unsaid
		if late {
			atMost += kube.StillAtMost
		}
		if v.s.now.Sub(now[l]) > atMost && v.wrong == "" {
			v.wrong = fmt.Sprintf("%v: what pod %s on %s sends to %v is dropped, and %s is Ready: %v", v.s.told(),
				x.from.name(), x.from.on.name, x.dst, v.oracle.Claimant(x.from.key, x.dst), trace.Sentences(v.walk(x)))
		}
	}
	v.losses = now
}

// isGone reports whether a machine's Node does not exist.
func (s *Sim) isGone(m *machine) bool { return get[*corev1.Node](s.api, "nodes", m.name) == nil }

// leaderReaches reports whether the controller that leads reaches a node: it waits for no node that it does not reach.
func (s *Sim) leaderReaches(m *machine) bool {
	return slices.ContainsFunc(s.controllers,
		func(c *controllerOn) bool {
			return c.node == s.api.leader && c.process.runs() && s.machine(c.node).receives(m)
		})
}

// isReadyFor reports whether the object that has a claim to packets is Ready, and a controller is there to say so.
func (s *Sim) isReadyFor(x packet) bool {
	kind, key, _ := strings.Cut(s.verdict.oracle.Claimant(x.from.key, x.dst), "/")
	if s.now.Sub(s.api.renewed) > leaderLeaseLasts || !s.leaderReaches(x.from.on) {
		return false
	}
	if kind == "EgressIP" {
		return meta.IsStatusConditionTrue(s.api.egressIP(key).Status.Conditions, "Ready")
	}
	e := get[*v1.EgressService](s.api, "egressservices", key)
	return e != nil && meta.IsStatusConditionTrue(e.Status.Conditions, "Ready")
}

// isOnlyLate reports whether nothing but late watches keeps a node from following.
func (v *verdict) isOnlyLate(node string) bool {
	for _, d := range v.disturbed {
		if d.node == node && !d.late && d.concerns(v.s.now) {
			return false
		}
	}
	return true
}
