package kube

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// writeAllocation merges annotations into a Node, if it is still at the version that was seen; an empty one is removed.
// Labels have a write of their own, after all others: an API server with earlier admission policies would refuse them,
// and no node's join must wait for that.
func writeAllocation(shown, should *world.Node) *Write {
	m := metadata{ResourceVersion: shown.Version, Annotations: map[string]any{}, Labels: map[string]any{}}
	for key, value := range missingAnnotations(shown, should) {
		if m.Annotations[key] = value; value == "" {
			m.Annotations[key] = nil // RFC 7386
		}
	}
	if len(m.Annotations) == 0 {
		m.Labels = labelPatch(shown.Labels, should.Labels)
	}
	if len(m.Annotations)+len(m.Labels) == 0 {
		return nil
	}
	body := []byte(toJSON(map[string]metadata{"metadata": m}))
	return &Write{Version: shown.Version, Urgent: true, Patch: func(time.Time) Patch {
		return Patch{Plural: "nodes", Name: shown.Name, Type: types.MergePatchType, Body: body, Client: ofCore}
	}}
}

// missingAnnotations returns the annotations that a node lacks: those that differ from what it should have, and those
// that cannot be read, of which the world has the previous values. An annotation whose value could not be allocated is
// left as it is. The record has a write of its own, after all others: an API server with earlier admission policies
// would refuse it, and no node's join must wait for that.
func missingAnnotations(shown, should *world.Node) map[string]string {
	a := world.Allocation{ID: should.ID, Join: should.Join, Transit: should.Transit}
	if shown.ID == a.ID && !shown.Unread.ID && slices.Equal(shown.Join, a.Join) &&
		slices.Equal(shown.Transit, a.Transit) {
		a.ID = 0
	}
	differ := shown.Unread.Subnets || !slices.Equal(shown.Subnets, should.Subnets) ||
		!world.SameParts(shown.Further, should.Further)
	if differ && len(should.Subnets) > 0 {
		a.Subnets, a.Further = should.Subnets, should.Further
	}
	set := AllocationAnnotations(a)
	if shown.AllocationProblem != should.AllocationProblem {
		set[v1.AnnotationAllocationProblem] = should.AllocationProblem
	}
	if len(set) == 0 && !shown.Record.Same(should.Record) {
		set[v1.AnnotationRecordedAddresses] = RecordAnnotation(should.Record)
	}
	return MergeNetworks(shown.OtherNetworks, set)
}

// labelPatch are the labels that differ, as a merge patch has them; nil removes one.
func labelPatch(shown, should map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range should {
		if was, is := shown[key]; !is || was != value {
			out[key] = value
		}
	}
	for key := range shown {
		if _, is := should[key]; !is {
			out[key] = nil
		}
	}
	return out
}
