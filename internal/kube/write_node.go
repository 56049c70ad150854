package kube

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// writeAllocation merges annotations into a Node, if it is still at the version that was seen; an empty one is removed.
func writeAllocation(shown, should *world.Node) *Write {
	set := allocated(shown, should)
	if len(set) == 0 {
		return nil
	}
	values := map[string]any{}
	for key, value := range set {
		if values[key] = value; value == "" {
			values[key] = nil // RFC 7386
		}
	}
	body := []byte(encode(map[string]metadata{"metadata": {shown.Version, values}}))
	return &Write{shown.Version, func(time.Time) Patch {
		return Patch{Plural: "nodes", Name: shown.Name, Type: types.MergePatchType, Body: body, Client: ofCore}
	}}
}

// allocated are the annotations that a node should have and has not. What could not be allocated is left as it is.
// The record is written by itself, after all else: an API server with admission policies of before would refuse it,
// and no node's join must wait for that.
func allocated(shown, should *world.Node) map[string]string {
	id := should.ID
	if shown.ID == id && slices.Equal(shown.Join, should.Join) && slices.Equal(shown.Transit, should.Transit) {
		id = 0
	}
	subnets := should.Subnets
	if slices.Equal(shown.Subnets, subnets) {
		subnets = nil
	}
	set := AllocationAnnotations(id, subnets, should.Join, should.Transit)
	if shown.AllocationProblem != should.AllocationProblem {
		set[v1.AnnotationAllocationProblem] = should.AllocationProblem
	}
	if len(set) == 0 && !shown.Record.Equal(should.Record) {
		set[v1.AnnotationRecordedAddresses] = RecordAnnotation(should.Record)
	}
	return MergeNetworks(shown.OtherNetworks, set)
}
