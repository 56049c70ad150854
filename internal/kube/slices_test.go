package kube_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestSlicesAreFollowed: endpoints come and go in many EndpointSlices of a Service with an EgressService, move from one
// to another and are in two for a while, pods get and lose the label that the Service selects, and each of the objects
// itself comes and goes. After each change, or several, a node has what it would have from nothing.
func TestSlicesAreFollowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSliced(t)
		memo := compile.NewMemo(all.Features())

		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			s.step(t)
			if rapid.IntRange(0, 3).Draw(t, "more before an update") == 0 {
				continue
			}
			memo.Update(s.w)

			if d := cmp.Diff(s.fromNothing().Lines(), memo.State.Lines()); d != "" {
				t.Fatalf("the memo differs from what follows from the objects (-objects +memo):\n%s", d)
			}
		}
	})
}

// sliced is a node's world with one Service, and the objects that it follows from.
type sliced struct {
	w       *world.World
	self    string
	mode    world.GatewayMode
	join    kube.Joined
	pods    map[string]*world.Pod
	service *corev1.Service
	slices  map[string]*discoveryv1.EndpointSlice
	egress  *world.EgressService
}

const (
	manyPods   = 18
	manySlices = 6
)

func newSliced(t *rapid.T) *sliced {
	s := &sliced{self: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"),
		mode: rapid.SampledFrom([]world.GatewayMode{world.SharedGateway, world.LocalGateway}).Draw(t, "mode"),
		join: kube.NewJoined(), pods: map[string]*world.Pod{}, slices: map[string]*discoveryv1.EndpointSlice{}}
	s.w = compiletest.Small(s.self, s.mode)
	for i := range manyPods {
		s.setPod(podNumber(i, false))
	}
	s.setService(lotsOfPods("app"))
	s.setEgress(t)
	for i := range manySlices {
		s.setSlice(t, i)
	}
	return s
}

// podNumber is one of ns0, on one of three nodes.
func podNumber(i int, labelled bool) *world.Pod {
	p := compiletest.Pod(0, fmt.Sprint("n", 1+i%3))
	p.Name, p.UID, p.IPs = fmt.Sprint("p", i), fmt.Sprint("uid-", i), compiletest.PodIPs(i, 1+i%3)
	p.Labels = map[string]string{"app": map[bool]string{true: "web", false: "none"}[labelled]}
	return p
}

func lotsOfPods(selects string) *corev1.Service {
	o := kube.LoadBalancer()
	o.Namespace, o.Name = "ns0", "s0"
	o.Spec.Selector, o.Spec.ClusterIPs = map[string]string{selects: "web"}, []string{"10.96.0.9", "fd00:10:96::9"}
	return o
}

func (s *sliced) step(t *rapid.T) {
	i := rapid.IntRange(0, manyPods-1).Draw(t, "pod")
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0, 1, 2, 3:
		s.setSlice(t, rapid.IntRange(0, manySlices-1).Draw(t, "slice"))
		return
	case 4:
		s.delSlice(fmt.Sprint("s0-", rapid.IntRange(0, manySlices-1).Draw(t, "slice")))
		return
	case 5, 6:
		s.setPod(podNumber(i, rapid.Bool().Draw(t, "labelled")))
		return
	case 7:
		p := podNumber(i, false)
		delete(s.pods, p.Key())
		s.w.DelPod(p.Key())
		s.w.DelAttachment(p.Key(), compiletest.Attachment(p).HostIface)
		return
	case 8:
		s.setService(lotsOfPods(rapid.SampledFrom([]string{"app", "other", ""}).Draw(t, "selects")))
		return
	case 9:
		if s.service = nil; rapid.Bool().Draw(t, "the EgressService goes") {
			s.egress = nil
			s.join.DelService(s.w, "ns0/s0")
			s.w.DelEgressService("ns0/s0")
			return
		}
		s.join.DelService(s.w, "ns0/s0")
		return
	case 10:
		s.moveEndpoint(t)
		return
	}
	s.setEgress(t)
}

func (s *sliced) setPod(p *world.Pod) {
	s.pods[p.Key()] = p
	s.w.SetPod(p)
	if p.Node == s.self {
		s.w.SetAttachment(compiletest.Attachment(p))
	}
}

func (s *sliced) setService(o *corev1.Service) {
	s.service = o
	s.join.SetService(s.w, o)
}

func (s *sliced) setEgress(t *rapid.T) {
	e := compiletest.EgressService(0)
	if e.Host = rapid.SampledFrom([]string{"n1", "n2", world.HostAll}).Draw(t, "host"); e.Host == world.HostAll {
		e.SourceIPBy = world.SourceNetwork
	} else {
		e.InForce = [2]bool{true, true}
		for _, ip := range compiletest.EgressAddr(20) {
			e.Items = append(e.Items, world.Assignment{Node: e.Host, IP: ip})
		}
	}
	s.egress = e
	s.w.SetEgressService(e)
}

// setSlice gives one of the slices some of the pods, in one family.
func (s *sliced) setSlice(t *rapid.T, i int) {
	numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, manyPods-1), 0, 8, rapid.ID).Draw(t, "endpoints")
	var endpoints []discoveryv1.Endpoint
	for _, n := range numbers {
		p := podNumber(n, false)
		e := discoveryv1.Endpoint{Addresses: []string{p.IPs[i%2].String()}, NodeName: &p.Node}
		switch rapid.IntRange(0, 3).Draw(t, "whose the slice says it is") {
		case 0: // a former pod's
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: "gone"}
		case 1:
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
		}
		endpoints = append(endpoints, e)
	}
	s.put(sliceOf(i, endpoints))
}

func sliceOf(i int, endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	o := kube.Slice(fmt.Sprint("s0-", i), "web", 8080, endpoints...)
	o.Namespace, o.Labels = "ns0", map[string]string{discoveryv1.LabelServiceName: "s0"}
	return o
}

func (s *sliced) put(o *discoveryv1.EndpointSlice) {
	s.slices[o.Name] = o
	s.join.SetSlice(s.w, o)
}

func (s *sliced) delSlice(name string) {
	delete(s.slices, name)
	s.join.DelSlice(s.w, "ns0/"+name)
}

// moveEndpoint takes an endpoint from one slice to another of its family, which is told first or last.
func (s *sliced) moveEndpoint(t *rapid.T) {
	i := rapid.IntRange(0, manySlices-3).Draw(t, "from")
	from := s.slices[fmt.Sprint("s0-", i)]
	if from == nil || len(from.Endpoints) == 0 {
		return
	}
	to := sliceOf(i+2, from.Endpoints[:1])
	if there := s.slices[to.Name]; there != nil {
		to.Endpoints = append(slices.Clone(there.Endpoints), to.Endpoints...)
	}
	less := sliceOf(i, from.Endpoints[1:])
	if rapid.Bool().Draw(t, "in both for a while") {
		s.put(to)
		s.put(less)
		return
	}
	s.put(less)
	s.put(to)
}

// fromNothing is the plan of a world that is made of the objects as they are now.
func (s *sliced) fromNothing() *plan.State {
	w := compiletest.Small(s.self, s.mode)
	for _, p := range s.pods {
		w.SetPod(p)
		if p.Node == s.self {
			w.SetAttachment(compiletest.Attachment(p))
		}
	}
	if s.service != nil {
		parts := slices.SortedFunc(maps.Values(s.slices), func(a, b *discoveryv1.EndpointSlice) int {
			return strings.Compare(a.Name, b.Name)
		})
		w.SetService(kube.Service(s.service, parts))
	}
	if s.egress != nil {
		w.SetEgressService(s.egress)
	}
	return compile.Full(w, all.Features())
}
