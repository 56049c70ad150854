package controller_test

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// putEgressService has people write one.
func (a *api) putEgressService(s *v1.EgressService) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s = s.DeepCopy()
	s.Generation++
	a.showEgressService(s)
}

func (a *api) showEgressService(s *v1.EgressService) {
	s.ResourceVersion = a.next()
	a.egress[s.Namespace+"/"+s.Name] = s
	shown := kube.EgressService(s.DeepCopy())
	a.watch <- func(w *world.World) { w.SetEgressService(shown) }
}

func (a *api) deleteEgressService(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.egress, key)
	a.watch <- func(w *world.World) { w.DelEgressService(key) }
}

// putBalanced has a Service with endpoints.
func (a *api) putBalanced(s *corev1.Service, slices ...*discoveryv1.EndpointSlice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.ResourceVersion = a.next()
	a.services[s.Namespace+"/"+s.Name] = s
	shown := kube.Service(s.DeepCopy(), slices)
	a.watch <- func(w *world.World) { w.SetService(shown) }
}

func (a *api) patchEgressService(p kube.Patch) (string, error) {
	patch, have, key := decode[v1.EgressService](p), "", p.Namespace+"/"+p.Name
	if o := a.egress[key]; o != nil {
		have = o.ResourceVersion
	}
	if err := a.begin("egressservices/"+key, have, patch.ResourceVersion); err != nil {
		return "", err
	}
	o := a.egress[key].DeepCopy()
	o.Status = patch.Status
	a.showEgressService(o)
	return o.ResourceVersion, nil
}

// host is status.host of an EgressService, and its reason for Ready.
func (a *api) host(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.egress[key]
	if s == nil {
		return ""
	}
	for _, c := range s.Status.Conditions {
		if c.Type == v1.ConditionReady {
			return s.Status.Host + " " + c.Reason
		}
	}
	return s.Status.Host
}

// labelled are the nodes with a label, in the order of their names.
func (a *api) labelled(key string, nodes ...string) (out string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range nodes {
		if _, is := a.nodes[name].Labels[key]; is {
			out += name
		}
	}
	return out
}
