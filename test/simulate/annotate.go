package simulate

import (
	"maps"

	v1 "github.com/egret-net/egret/api/v1"
)

// annotations are those that stories name, by these names.
var annotations = map[string]string{"mark": v1.AnnotationEgressIPMark, "override": v1.AnnotationOverride,
	"unassigned": v1.AnnotationWhenUnassigned}

// annotate sets an annotation of an EgressIP or an EgressService; with "-" it removes the annotation.
func (s *Sim) annotate(plural, name, annotation, value string) {
	key := name
	if plural == "egressservices" {
		key = namespace + "/" + name
	}
	old := s.api.objects[plural][key]
	if old == nil {
		return
	}
	o := old.DeepCopyObject().(object)
	all := map[string]string{}
	maps.Copy(all, o.GetAnnotations())
	if all[annotations[annotation]] = value; value == "-" {
		delete(all, annotations[annotation])
	}
	o.SetAnnotations(all)
	s.api.put(plural, o)
}
