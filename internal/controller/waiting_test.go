package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// waiting is two EgressServices whose Services have one ingress IP. The first leaves with it, by a node whose agent
// says nothing, and the other waits; nothing else happens in the cluster.
type waiting struct{ *api }

func newWaiting(t *testing.T) waiting {
	a := waiting{newAPI(time.Millisecond)}
	for i, name := range []string{"n1", "n2"} {
		a.putNode(aNode(name, i+2))
	}
	for i, name := range []string{"web", "other"} {
		s, slice := aBalancer()
		s.Name, s.Spec.ClusterIP = name, []string{"10.96.0.9", "10.96.0.10"}[i]
		if i == 0 {
			a.putBalanced(s, slice)
		} else {
			a.putBalanced(s)
		}
		o := metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.Unix(int64(i+1), 0)}
		a.putEgressService(&v1.EgressService{ObjectMeta: o})
	}
	start(t, a.api)
	eventually(t, "the first one's host", "n1 NoEndpoints", func() string { return a.host("shop/web") })
	return a
}

// edits has somebody change the first EgressService.
func (a waiting) edits(edit func(*v1.EgressServiceSpec)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.egress["shop/web"].DeepCopy()
	edit(&s.Spec)
	s.Generation++
	a.showEgressService(s)
}

// TestWaitingHasItInTheEnd: an address that one EgressService lets go of goes to another one that waits for it, though
// no node says anything and nothing else happens.
func TestWaitingHasItInTheEnd(t *testing.T) {
	for name, letsGo := range map[string]func(waiting){
		"EgressService deleted": func(a waiting) { a.deleteEgressService("shop/web") },
		"Service deleted": func(a waiting) {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.services, "shop/web")
			a.watch <- func(w *world.World) { w.DelService("shop/web") }
		},
		"address taken from the Service": func(a waiting) {
			s, slice := aBalancer()
			s.Status.LoadBalancer.Ingress = nil
			a.putBalanced(s, slice)
		},
		"no LoadBalancer any more": func(a waiting) {
			s, slice := aBalancer()
			s.Spec.Type = corev1.ServiceTypeClusterIP
			a.putBalanced(s, slice)
		},
		"by Network": func(a waiting) {
			a.edits(func(s *v1.EgressServiceSpec) { s.SourceIPBy = "Network" })
		},
		"no node matches": func(a waiting) {
			a.edits(func(s *v1.EgressServiceSpec) {
				s.NodeSelector = metav1.LabelSelector{MatchLabels: map[string]string{"color": "none"}}
			})
		},
	} {
		for _, after := range []time.Duration{time.Second, time.Hour} {
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := newWaiting(t)
					time.Sleep(after)
					letsGo(a)
					time.Sleep(9 * time.Second)
					if have := a.host("shop/other"); have[0] != ' ' {
						t.Errorf("the former host may hold it still, and it is given: %s", have)
					}
					time.Sleep(2 * time.Second)
					if have := a.host("shop/other"); !strings.HasSuffix(have, " NoEndpoints") || have[0] == ' ' {
						t.Errorf("it waits still: %q", have)
					}
				})
			})
		}
	}
}
