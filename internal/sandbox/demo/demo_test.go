package demo

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

func TestJudge(t *testing.T) {
	const one, two, node, silence = "172.18.0.33", "172.18.0.44", "172.18.0.2", noAnswer
	both, wrong := []string{one, two}, "WRONG: want 172.18.0.33 or 172.18.0.44"
	for name, c := range map[string]struct {
		row  row
		want string
	}{
		"one of two":         {row{want: both, seen: []string{one}}, "right"},
		"both":               {row{want: both, seen: []string{one, two}}, "right"},
		"a node's":           {row{want: both, seen: []string{one, node}}, wrong},
		"a stranger's":       {row{want: []string{node}, seen: []string{one}}, "WRONG: want " + node},
		"nothing":            {row{want: both}, wrong},
		"silence":            {row{want: both, seen: []string{silence}}, wrong},
		"one lost":           {row{want: both, seen: []string{one, silence}}, wrong},
		"one lost in a move": {row{want: both, mayMiss: true, seen: []string{silence, one}}, "right"},
		"all lost in a move": {row{want: both, mayMiss: true, seen: []string{silence}}, wrong},
		"silence wanted":     {row{want: []string{silence}, seen: []string{silence}}, "right"},
		"an answer unwanted": {row{want: []string{silence}, seen: []string{node}}, "WRONG: want " + silence},
		"wrong in a move":    {row{want: both, mayMiss: true, seen: []string{node, silence, one}}, wrong},
	} {
		if have := c.row.verdictText(); have != c.want {
			t.Errorf("%s: have %q, want %q", name, have, c.want)
		}
	}
	if have, want := (row{seen: []string{two, one, two}}).seenText(), one+" x1, "+two+" x2"; have != want {
		t.Errorf("have %q, want %q", have, want)
	}
}

func TestParseAnswers(t *testing.T) {
	const a, b = "http://172.18.0.100:8080/clientip", "http://[fc00:f853:ccd:e793::100]:8080/clientip"
	have := parseAnswers("172.18.0.33:41000\t" + a + "\t\n" +
		"[fc00:f853:ccd:e793::33]:41001\t" + b + "\t\n" +
		"[::ffff:172.18.0.44]:41002\t" + a + "\t\n" +
		"\t" + b + "\tConnection timed out after 2001 milliseconds\n" +
		"<html>\t" + b + "\t\n")
	want := map[string][]string{
		a: {"172.18.0.33", "172.18.0.44"},
		b: {"fc00:f853:ccd:e793::33", "no answer", "not an address: <html>"},
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("have %v\nwant %v", have, want)
	}
}

func TestManifestOfFamilies(t *testing.T) {
	four, six := []string{"172.18.0.33", "172.18.0.44"}, []string{"fc00:f853:ccd:e793::33", "fc00:f853:ccd:e793::44"}
	for family, want := range map[sandbox.IPFamily][]string{
		sandbox.IPv4: four, sandbox.IPv6: six, sandbox.Dual: slices.Concat(four, six),
	} {
		e := &v1.EgressIP{}
		text, err := readManifest("egressip", family)
		if err == nil {
			err = yaml.UnmarshalStrict([]byte(text), e)
		}
		if err != nil || !slices.Equal(e.Spec.EgressIPs, want) || e.Name != exampleName {
			t.Errorf("%s: %s has %v, want %v, %v", family, e.Name, e.Spec.EgressIPs, want, err)
		}
		text, err = readManifest("network", family)
		if err != nil || strings.Contains(text, "10.128.0.0/16") == (family == sandbox.IPv6) ||
			strings.Contains(text, "fd00:128::/48") == (family == sandbox.IPv4) {
			t.Errorf("%s: %v\n%s", family, err, text)
		}
	}
}

func TestReadyOn(t *testing.T) {
	object := func(status metav1.ConditionStatus, observed int64, node string) *v1.EgressIP {
		return &v1.EgressIP{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: v1.EgressIPStatus{
				Items:      []v1.EgressIPStatusItem{{Node: node, EgressIP: "172.18.0.33"}},
				Conditions: []metav1.Condition{{Type: v1.ConditionReady, Status: status, ObservedGeneration: observed}},
			},
		}
	}
	for name, c := range map[string]struct {
		object *v1.EgressIP
		ready  bool
	}{
		"ready":                   {object(metav1.ConditionTrue, 2, "n1"), true},
		"not looked at":           {&v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, false},
		"ready before the change": {object(metav1.ConditionTrue, 1, "n1"), false},
		"not ready":               {object(metav1.ConditionFalse, 2, "n1"), false},
		"ready on the wrong node": {object(metav1.ConditionTrue, 2, "n9"), false},
	} {
		if err := readyOn(c.object, []string{"n1", "n2"}); (err == nil) != c.ready {
			t.Errorf("%s: %v", name, err)
		}
	}
}
