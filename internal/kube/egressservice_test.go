package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestRoutingTable: digits are a number, what ip-rule(8) would take for another one is refused, the rest is a name.
func TestRoutingTable(t *testing.T) {
	for text, want := range map[string]world.RoutingTable{
		"": {}, "100": {Number: 100}, "2097151": {Number: plan.MostTable}, "blue": {Name: "blue"},
		"254": {Number: 254}, "main": {Name: "main"}, "1001": {Number: 1001},
		"100a":                  {Name: "100a"},
		strings.Repeat("a", 63): {Name: strings.Repeat("a", 63)},
	} {
		if have, err := routingTable(text); have != want || err != nil || have.String() != text {
			t.Errorf("%q: have %+v, %v", text, have, err)
		}
	}
	for _, text := range []string{"0", "010", "2097152", "4294967296", "0x64", "-1", "blue lookup main", "a/b", "ü",
		"255", "local", "284279",
		strings.Repeat("a", 64)} {
		if have, err := routingTable(text); err == nil {
			t.Errorf("%q: have %+v", text, have)
		}
	}
}

// TestNetworksOfNamespace: the list is what the annotation has between commas; without it there is no limit.
func TestNetworksOfNamespace(t *testing.T) {
	for text, want := range map[string][]string{"blue, 1001": {"blue", "1001"}, "": {""}, "*": {"*"}} {
		n := Namespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{v1.AnnotationEgressServiceNetworks: text}}})
		if !n.LimitsNetworks || !slices.Equal(n.Networks, want) {
			t.Errorf("%q: %+v", text, n)
		}
	}
	if n := Namespace(&corev1.Namespace{}); n.LimitsNetworks {
		t.Errorf("without annotation: %+v", n)
	}
}

// TestOverrideOfEgressIP: a value that says nothing counts as never, and is told.
func TestOverrideOfEgressIP(t *testing.T) {
	for text, told := range map[string]bool{"never": false, " Never": false, "nver": true} {
		e := EgressIP(&v1.EgressIP{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{v1.AnnotationOverride: text}}})
		if !e.NeverOverridden || e.DropWhenUnassigned ||
			strings.Contains(e.UnassignedProblem, v1.AnnotationOverride) != told {
			t.Errorf("%q: %+v", text, e)
		}
	}
}

// TestEgressService: what can be read of an object is read; what the CRD would have refused is a problem of it.
func TestEgressService(t *testing.T) {
	o := &v1.EgressService{Spec: v1.EgressServiceSpec{SourceIPBy: "NodeIP", Network: "a b",
		NodeSelector: metav1.LabelSelector{MatchLabels: map[string]string{"no such key": ""}}}}
	s := EgressService(o)
	if len(s.Problems) != 2 || !strings.Contains(s.Problems[0], "spec.sourceIPBy") ||
		!strings.Contains(s.Problems[1], "spec.network") {
		t.Errorf("problems: %q", s.Problems)
	}
	if !strings.Contains(s.Nodes.Problem, "spec.nodeSelector") || s.Nodes.SelectsNode(&world.Node{}) {
		t.Errorf("selector: %+v", s.Nodes)
	}
	if s := EgressService(&v1.EgressService{}); s.SourceIPBy != world.SourceLoadBalancerIP || len(s.Problems) > 0 ||
		!s.Nodes.SelectsNode(&world.Node{}) {
		t.Errorf("an empty one is %+v", s)
	}
}

// TestEgressServiceStatusComesBack: what is written is what is read.
func TestEgressServiceStatusComesBack(t *testing.T) {
	ips := []netip.Addr{netip.MustParseAddr("172.18.0.100"), netip.MustParseAddr("fd00::100")}
	s := &world.EgressService{Host: "n1", Placement: world.Placement{
		Items:   []world.Assignment{{Node: "n1", IP: ips[0]}, {Node: "n1", IP: ips[1]}},
		Leaving: []world.Leaving{{Node: "n2", IP: ips[0], Since: time.Unix(1000, 0)}}, InForce: [2]bool{true, false}}}
	if have := EgressServiceStatus(s).AssignedSourceIPs; have != "172.18.0.100,fd00::100" {
		t.Errorf("kubectl get shows %q", have)
	}
	back := EgressService(&v1.EgressService{Status: EgressServiceStatus(s)})
	if back.Host != s.Host || !back.Placement.Same(&s.Placement) {
		t.Errorf("have %+v, want %+v", back, s)
	}
	status := v1.EgressServiceStatus{Host: "ALL", SourceIPs: []string{"172.18.0.1"}}
	all := EgressService(&v1.EgressService{Status: status})
	if all.Host != world.HostAll || len(all.Items) > 0 {
		t.Errorf("have %+v", all)
	}
	hostile := EgressService(&v1.EgressService{Status: v1.EgressServiceStatus{Host: "../n", SourceIPs: []string{"x"}}})
	if hostile.Host != "" || len(hostile.Items) > 0 {
		t.Errorf("have %+v", hostile)
	}
}

// TestReportOfEgressServices: what a node says of EgressServices is read as it was written, and EgressIPs beside it.
func TestReportOfEgressServices(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.100")
	h := &world.Holding{Node: "n1", BootID: "b",
		Holds: map[string][]netip.Addr{"e": {ip}, "shop/web": {ip}},
		Steers: map[string][]world.Assignment{"e": {{Node: "n2", IP: ip}}, "shop/web": {{Node: "n1", IP: ip}},
			"shop/db": {{Node: "n1", IP: netip.IPv4Unspecified()}}, "f": {{IP: netip.IPv6Unspecified()}},
			"shop/none": {{IP: netip.IPv4Unspecified()}}}}
	object := ref.Of(ref.EgressService, "shop/db")
	problem := world.Problem{Object: object, Reason: world.ReasonUnknownNetwork, Message: "no table blue"}
	o := EgressNode(h, "uid", "v1", []world.Problem{problem})
	if len(o.Status.Holding) != 1 || len(o.Status.HeldAddresses) != 1 || len(o.Status.Steers) != 1 ||
		len(o.Status.ObjectSteers) != 4 || o.Status.Problems[0] != "egressservice/shop/db: no table blue" {
		t.Errorf("written: %+v", o.Status)
	}
	back := Holding(o)
	if len(back.Holds) != 2 || back.Holds["shop/web"][0] != ip || !reflect.DeepEqual(back.Steers, h.Steers) {
		t.Errorf("read: %+v", back)
	}
	if back.Problems["shop/db"] != "no table blue" || back.Reasons["shop/db"] != world.ReasonUnknownNetwork {
		t.Errorf("problems read: %v, %v", back.Problems, back.Reasons)
	}
}

// TestGivingsAreRepeated: since when an address is given, and was to one that leaves, is read as it was written, to the
// microsecond; so is what a node repeats of it. A status of a controller of before, and a report of an agent of before,
// say nothing of it.
func TestGivingsAreRepeated(t *testing.T) {
	ip, since := netip.MustParseAddr("172.18.0.100"), ref.SinceTime(time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC))
	is, was := world.Assignment{Node: "n1", IP: ip}, world.Assignment{Node: "n2", IP: ip}
	p := world.Placement{Items: []world.Assignment{is}, Given: []world.Given{{Assignment: is, Since: since}},
		Leaving: []world.Leaving{{Node: "n2", IP: ip, Since: since.Time(), Given: since - 1}}}
	legacy := p
	legacy.Given, legacy.Leaving = nil, []world.Leaving{{Node: "n2", IP: ip, Since: since.Time()}}
	for _, p := range []world.Placement{p, legacy} {
		e := EgressIP(&v1.EgressIP{Status: throughJSON(t, EgressIPStatus(&world.EgressIP{Placement: p}))})
		s := EgressService(&v1.EgressService{Status: throughJSON(t,
			EgressServiceStatus(&world.EgressService{Host: "n1", Placement: p}))})
		if !e.Placement.Same(&p) || !s.Placement.Same(&p) {
			t.Errorf("have %+v and %+v, want %+v", e.Placement, s.Placement, p)
		}
	}
	if p.Since(is) != since || p.Since(was) != since-1 || legacy.Since(is) != 0 {
		t.Errorf("given %s, and the one that leaves %s", p.Since(is), p.Since(was))
	}
	h := &world.Holding{Node: "n1", BootID: "b", Holds: map[string][]netip.Addr{"e": {ip}, "shop/web": {ip}},
		HeldUID: map[world.EgressAddress]string{{Object: "e", IP: ip}: "1", {Object: "shop/web", IP: ip}: "2"},
		Steers:  map[string][]world.Assignment{"e": {was}, "shop/web": {was}}}
	for _, since := range []ref.Since{0, since} {
		for object := range h.Holds {
			h.SayHeld(object, ip, since)
			h.SaySteers(object, was, since)
		}
		o := EgressNode(h, "uid", "v1", nil)
		o.Status = throughJSON(t, o.Status)
		back := Holding(o)
		if !maps.Equal(back.HeldUID, h.HeldUID) {
			t.Errorf("held for %v, want %v", back.HeldUID, h.HeldUID)
		}
		if !maps.Equal(back.HeldSince, h.HeldSince) || !maps.Equal(back.SteersSince, h.SteersSince) {
			t.Errorf("have %v and %v, want %v and %v", back.HeldSince, back.SteersSince, h.HeldSince, h.SteersSince)
		}
	}
}

// TestHostsGiven: what the items of an EgressService say of another node or address than the status has counts for
// nothing; a controller of before leaves them as they were.
func TestHostsGiven(t *testing.T) {
	now := metav1.NewMicroTime(time.Unix(1000, 0))
	items := []v1.EgressServiceStatusItem{{Node: "n1", SourceIP: "172.18.0.1", Since: now},
		{Node: "ALL", SourceIP: "0.0.0.0", Since: now}}
	for host, want := range map[string]string{
		"n1": "[{{n1 172.18.0.1} 1970-01-01T00:16:40.000000Z}]", "n2": "[]",
		"ALL": "[{{ALL 0.0.0.0} 1970-01-01T00:16:40.000000Z}]", "": "[]",
	} {
		s := EgressService(&v1.EgressService{Status: v1.EgressServiceStatus{Host: host,
			SourceIPs: []string{"172.18.0.1"}, Items: items}})
		if have := fmt.Sprint(s.Given); have != want {
			t.Errorf("host %q: given %s, want %s", host, have, want)
		}
	}
}

// throughJSON is a value as the API server gives it back.
func throughJSON[T any](t *testing.T, v T) (back T) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestHostileReportOfEgressServices: what no agent would write is a problem of its node, and nothing is held by it.
func TestHostileReportOfEgressServices(t *testing.T) {
	h := Holding(&egretv1.EgressNode{Status: egretv1.EgressNodeStatus{BootID: "b",
		HeldAddresses: []egretv1.HeldAddress{
			{Kind: ref.EgressService, Namespace: "a", Name: "b/c", Network: "default", IP: "172.18.0.1"},
			{Kind: ref.EgressService, Name: "e", Network: "default", IP: "172.18.0.1"},
			{Kind: ref.EgressIP, Namespace: "a", Name: "e", Network: "default", IP: "172.18.0.1"},
			{Kind: ref.EgressService, Namespace: "a", Name: "b", Network: "blue", IP: "172.18.0.1"}},
		ObjectSteers: []egretv1.ObjectSteered{
			{Kind: ref.EgressService, Namespace: "a", Name: "b", IP: "172.18.0.1", Node: "x y"},
			{Kind: ref.EgressService, Namespace: "a", Name: "b", IP: "172.18.0.1"},
			{Kind: ref.EgressIP, Name: "a/b", IP: "0.0.0.0"}},
	}})
	if len(h.Holds) > 0 || len(h.Steers) > 0 || h.Problems[""] == "" {
		t.Errorf("have %+v", h)
	}
}
