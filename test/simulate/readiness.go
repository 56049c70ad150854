package simulate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/egret-net/egret/internal/trace"
)

// unsaid is for how long an EgressIP may be Ready while packets of one of its pods are dropped: a question to a holder,
// the report, and the controller's word.
const unsaid = 9 * time.Second

// judgeReadiness fails the run if an EgressIP is Ready for longer than that. It is for stories with one EgressIP a
// group, and whose controllers run.
func (s *Sim) judgeReadiness() {
	since := map[packet]time.Time{}
	s.every(500*time.Millisecond, func() {
		if len(s.verdict.stale) > 0 {
			return
		}
		now := map[packet]time.Time{}
		for _, x := range s.packets() {
			if !s.readyFor(x.from) || !dropped(s.verdict.walk(x)) {
				continue
			}
			if now[x] = since[x]; since[x].IsZero() {
				now[x] = s.now
			}
			if s.now.Sub(now[x]) > unsaid {
				s.verdict.wrong = fmt.Sprintf("%v: what pod %s sends to %v is dropped, and its EgressIP is Ready: %v",
					s.told(), x.from.name(), x.dst, trace.Sentences(s.verdict.walk(x)))
			}
		}
		since = now
	})
}

// readyFor says whether the EgressIP that selects a pod is Ready.
func (s *Sim) readyFor(p *pod) bool {
	o := get[*corev1.Pod](s.api, "pods", p.key)
	for name := range s.api.objects["egressips"] {
		e := s.api.egressIP(name)
		if o != nil && e.Spec.PodSelector.MatchLabels["group"] == o.Labels["group"] {
			return meta.IsStatusConditionTrue(e.Status.Conditions, "Ready")
		}
	}
	return false
}

func dropped(ends []trace.End) bool {
	return !slices.ContainsFunc(ends, func(e trace.End) bool { return e.Kind != trace.Dropped })
}
