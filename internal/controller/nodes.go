package controller

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// reasonAllocation is the reason of Events about ids and subnets of nodes.
const reasonAllocation = "NodeAllocation"

// nodes are the nodes with what they say and what they should say; see egressIPs.
type nodes struct {
	says   map[string]*world.Node
	should map[string]*world.Node
}

func newNodes() *nodes {
	return &nodes{says: map[string]*world.Node{}, should: map[string]*world.Node{}}
}

// see takes in what changed in the world, and puts there what was decided.
func (s *nodes) see(w *world.World) {
	for name := range s.says {
		if w.Node(name) == nil {
			delete(s.says, name)
			delete(s.should, name)
		}
	}
	for _, name := range w.Nodes() {
		s.seeOne(w, name)
	}
}

func (s *nodes) seeOne(w *world.World, name string) {
	n, should := w.Said(name), s.should[name]
	if n == nil || n == should {
		return
	}
	s.says[name] = n
	if should != nil {
		s.put(w, withAllocation(n, should))
	}
}

func (s *nodes) put(w *world.World, n *world.Node) {
	s.should[n.Name] = n
	w.SetNode(n)
}

// withAllocation is n with what the controller writes of a.
func withAllocation(n, a *world.Node) *world.Node {
	c := *n
	c.ID, c.Subnets, c.Join, c.Transit, c.Record, c.AllocationProblem = a.ID, a.Subnets, a.Join, a.Transit, a.Record, a.AllocationProblem
	return &c
}

// decide puts an allocation in place, and returns what people should know of it and the node does not say yet.
func (s *nodes) decide(w *world.World, name string, a zone.Allocation) []kube.Event {
	old, text := w.Said(name), strings.Join(a.Problems, "; ")
	n := withAllocation(old, &world.Node{ID: a.ID, Subnets: a.Subnets, Join: a.Join, Transit: a.Transit, Record: a.Record, AllocationProblem: text})
	if s.should[name] == nil || !sameAllocation(old, n) {
		s.put(w, n)
	}
	if text == "" || text == old.AllocationProblem {
		return nil
	}
	return []kube.Event{{
		// Kubernetes' own components name a node by its name in place of the UID, and kubectl describe looks for that.
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)},
		Warning:   true, Reason: reasonAllocation, Action: "Allocate", Note: text,
	}}
}

func sameAllocation(a, b *world.Node) bool {
	return a.ID == b.ID && slices.Equal(a.Subnets, b.Subnets) && slices.Equal(a.Join, b.Join) && slices.Equal(a.Transit, b.Transit) &&
		a.Record.Equal(b.Record) && a.AllocationProblem == b.AllocationProblem
}

// annotations are those that a node should have and has not. What could not be allocated is left as it is. The record is written by itself, after all else: an
// API server with admission policies of before would refuse it, and no node's join must wait for that.
func annotations(says, should *world.Node) map[string]string {
	id := should.ID
	if says.ID == id && slices.Equal(says.Join, should.Join) && slices.Equal(says.Transit, should.Transit) {
		id = 0
	}
	subnets := should.Subnets
	if slices.Equal(says.Subnets, subnets) {
		subnets = nil
	}
	set := kube.AllocationAnnotations(id, subnets, should.Join, should.Transit)
	if says.AllocationProblem != should.AllocationProblem {
		set[v1.AnnotationAllocationProblem] = should.AllocationProblem
	}
	if len(set) == 0 && !says.Record.Equal(should.Record) {
		set[v1.AnnotationRecordedAddresses] = kube.RecordAnnotation(should.Record)
	}
	return kube.MergeNetworks(says.OtherNetworks, set)
}
