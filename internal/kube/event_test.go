package kube

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
)

func TestEventIsOneThatTheServerTakes(t *testing.T) {
	e := Event{Regarding: corev1.ObjectReference{Kind: "EgressIP", Name: "prod"}, Warning: true, Reason: "Moved",
		Action: "Assign", Note: strings.Repeat("ä", 3000)}
	for _, name := range []string{"prod", strings.Repeat("a", 253), strings.Repeat("a.", 126) + "a"} {
		e.Regarding.Name = name
		p := NewPosting(e, time.Now())
		if problems := validation.NameIsDNSSubdomain(p.Name, false); len(problems) > 0 {
			t.Errorf("name %q: %v", p.Name, problems)
		}
	}
	o := eventObject("egret-controller", "n1", NewPosting(e, time.Now()))
	if o.Namespace != "default" || o.Type != "Warning" || len(o.Note) > NoteLimit || !utf8.ValidString(o.Note) ||
		o.EventTime.IsZero() {
		t.Errorf("have %+v", o)
	}
}
