package kube

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// hostile is what an attacker would have in the place of a hardware address: ovs-ofctl reads a flow a line.
const hostile = "02:00:00:00:00:02\ncookie=0xbad,table=0,priority=65000 actions=drop"

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNodeAnnotationsAreParsed: what an annotation says that its type cannot be is a problem of that node, and nothing
// else of it is believed.
func TestNodeAnnotationsAreParsed(t *testing.T) {
	many := make([]string, maxHostCIDRs+1)
	for i := range many {
		many[i] = fmt.Sprintf("172.18.%d.%d/16", i/256, i%256)
	}
	for name, c := range map[string]struct {
		annotation, text string
		believed         func(*world.Node) bool
	}{
		"line break in a MAC": {v1.AnnotationL3GatewayConfig,
			jsonOf(t, map[string]any{"default": map[string]string{"mac-address": hostile}}),
			func(n *world.Node) bool { return n.UplinkMAC.IsValid() }},
		"separator in a MAC": {v1.AnnotationL3GatewayConfig,
			`{"default":{"mac-address":"02:00:00:00:00:02,output:1"}}`,
			func(n *world.Node) bool { return n.UplinkMAC.IsValid() }},
		"group's MAC": {v1.AnnotationL3GatewayConfig, `{"default":{"mac-address":"33:33:00:00:00:02"}}`,
			func(n *world.Node) bool { return n.UplinkMAC.IsValid() }},
		"next hop": {v1.AnnotationL3GatewayConfig, `{"default":{"next-hops":["172.18.0.1\n"]}}`,
			func(n *world.Node) bool { return len(n.Gateways) > 0 }},
		"many next hops": {v1.AnnotationL3GatewayConfig,
			jsonOf(t, map[string]any{"default": map[string]any{"next-hops": addrTexts(many)}}),
			func(n *world.Node) bool { return len(n.Gateways) > maxGateways }},
		"chassis": {v1.AnnotationNodeChassisID, "n2",
			func(n *world.Node) bool { return n.ChassisID != "" }},
		"no chassis": {v1.AnnotationNodeChassisID, "", func(n *world.Node) bool { return n.ChassisID != "" }},
		"many addresses": {v1.AnnotationHostCIDRs, jsonOf(t, many),
			func(n *world.Node) bool { return len(n.HostAddrs) > maxHostCIDRs || len(n.CIDRs) > maxHostCIDRs }},
		"many subnets": {v1.AnnotationNodeSubnets, jsonOf(t, map[string][]string{"default": many}),
			func(n *world.Node) bool { return len(n.Subnets) > maxSubnets }},
		"zone of an address": {v1.AnnotationHostCIDRs, `["fe80::1%eth0/64"]`,
			func(n *world.Node) bool { return len(n.HostAddrs) > 0 }},
		"long": {v1.AnnotationNodeID, strings.Repeat("9", 100<<10),
			func(n *world.Node) bool { return n.ID != 0 }},
	} {
		n := Node(annotated(map[string]string{c.annotation: c.text}))
		if c.believed(n) {
			t.Errorf("%s: believed: %.300v", name, n)
		}
		text := fmt.Sprint(n.Problems)
		if len(n.Problems) != 1 || !strings.Contains(text, c.annotation) || len(text) > 2*maxText+2 ||
			strings.ContainsAny(text, "\n\r\x00") {
			t.Errorf("%s: problems %.600q", name, n.Problems)
		}
	}
}

// TestInternalIPsAreBounded: a kubelet can tell of as many addresses as a status has room for, and every agent would go
// through all of them.
func TestInternalIPsAreBounded(t *testing.T) {
	o := annotated(nil)
	for i := range 40_000 {
		address := netip.AddrFrom4([4]byte{8, byte(i >> 16), byte(i >> 8), byte(i)}).String()
		o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP,
			Address: address})
	}
	if n := Node(o); len(n.InternalIPs) != maxInternalIPs || len(n.HostAddrs) != maxInternalIPs ||
		len(n.Problems) != 1 {
		t.Errorf("%d internal IPs, %d of the host, problems %q", len(n.InternalIPs), len(n.HostAddrs), n.Problems)
	}
}

func addrTexts(cidrs []string) []string {
	var out []string
	for _, c := range cidrs {
		ip, _, _ := strings.Cut(c, "/")
		out = append(out, ip)
	}
	return out
}

// TestPublishedAddressesAreRead: of a host with more addresses than others read, those of the primary network are read.
func TestPublishedAddressesAreRead(t *testing.T) {
	h := HostFacts{Zone: "n1", ChassisID: "n1", Primary: mustPrefixes("172.18.0.2/24"), UplinkMAC: "02:00:00:00:00:02"}
	for i := range 1000 {
		h.HostCIDRs = append(h.HostCIDRs, mustPrefixes(fmt.Sprintf("10.96.%d.%d/32", i/256, i%256))...)
	}
	h.HostCIDRs = append(h.HostCIDRs, h.Primary...)
	n := Node(annotated(HostAnnotations(h)))
	if len(n.Problems) > 0 || len(n.CIDRs) != maxHostCIDRs || n.CIDRs[maxHostCIDRs-1] != h.Primary[0] {
		t.Errorf("have %v, problems %v", n.CIDRs, n.Problems)
	}
}

// TestEgressNodeIsParsed: names, addresses and hardware addresses that are none are a problem of the node, whose other
// words count.
func TestEgressNodeIsParsed(t *testing.T) {
	good := egretv1.EgressNodeStatus{BootID: "b", Holding: []egretv1.Held{{EgressIP: "e", IP: "172.18.0.33"}},
		Conflicts: []egretv1.Conflict{{EgressIP: "e", IP: "172.18.0.33", MAC: "02:00:00:00:00:09"}}}
	want := Holding(&egretv1.EgressNode{Status: good})
	if want.Problems != nil || len(want.Holds["e"]) != 1 || len(want.Conflicts["e"]) != 1 {
		t.Fatalf("what is well is not read: %+v", want)
	}
	for name, change := range map[string]func(*egretv1.EgressNodeStatus){
		"name": func(s *egretv1.EgressNodeStatus) {
			s.Holding = append(s.Holding, egretv1.Held{EgressIP: "e\nx", IP: "172.18.0.34"})
		},
		"address": func(s *egretv1.EgressNodeStatus) {
			s.Holding = append(s.Holding, egretv1.Held{EgressIP: "e", IP: "172.18.0.34,LOCAL"})
		},
		"MAC": func(s *egretv1.EgressNodeStatus) {
			s.Conflicts = append(s.Conflicts, egretv1.Conflict{EgressIP: "e", IP: "172.18.0.33", MAC: hostile})
		},
		"since": func(s *egretv1.EgressNodeStatus) {
			s.Holding = append(s.Holding, egretv1.Held{EgressIP: "e", IP: "172.18.0.34", Since: "yesterday\n"})
		},
		"since without an end": func(s *egretv1.EgressNodeStatus) {
			s.Steers = append(s.Steers, egretv1.Steered{EgressIP: "e", IP: "172.18.0.34", Node: "n",
				Since: "2026-01-02T03:04:05.000006Z" + strings.Repeat("0", 100)})
		},
		"since of another zone": func(s *egretv1.EgressNodeStatus) {
			s.ObjectSteers = append(s.ObjectSteers, egretv1.ObjectSteered{Kind: "EgressService", Namespace: "a",
				Name: "b", IP: "172.18.0.34", Node: "n", Since: "2026-01-02T03:04:05.000006+01:00"})
		},
		"name of conflict": func(s *egretv1.EgressNodeStatus) {
			s.Conflicts = append(s.Conflicts, egretv1.Conflict{EgressIP: "", IP: "172.18.0.33",
				MAC: "02:00:00:00:00:0a"})
		},
	} {
		s := *good.DeepCopy()
		change(&s)
		h := Holding(&egretv1.EgressNode{Status: s})
		if !reflect.DeepEqual(h.Holds, want.Holds) || !reflect.DeepEqual(h.Conflicts, want.Conflicts) ||
			h.Steers != nil || h.Problems[""] == "" || strings.Contains(h.Problems[""], "\n") {
			t.Errorf("%s: have %+v", name, h)
		}
	}
}

// TestEgressNodeIsBounded: however much a node says, what is kept of it is little, and on one line each.
func TestEgressNodeIsBounded(t *testing.T) {
	s := egretv1.EgressNodeStatus{BootID: "b"}
	for i := range 10000 {
		s.Holding = append(s.Holding, egretv1.Held{EgressIP: fmt.Sprint("e", i), IP: "172.18.0.33"})
		s.Conflicts = append(s.Conflicts, egretv1.Conflict{EgressIP: "e", IP: "172.18.0.33", MAC: "02:00:00:00:00:09"})
		s.ObjectProblems = append(s.ObjectProblems,
			egretv1.Problem{Kind: ref.EgressIP, Name: fmt.Sprint("p", i),
				Message: "it is\n" + strings.Repeat("long ", 100)},
			egretv1.Problem{Kind: ref.Network, Name: fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), Message: "\x1b[2J"})
	}
	h := Holding(&egretv1.EgressNode{Status: s})
	if len(h.Holds) != maxHeld || len(h.Conflicts["e"]) != maxConflicts ||
		len(h.Problems)+len(h.Faults) != maxProblems+1 || h.Problems[""] == "" {
		t.Errorf("%d held, %d conflicts, %d problems, %d faults", len(h.Holds), len(h.Conflicts["e"]), len(h.Problems),
			len(h.Faults))
	}
	for _, texts := range []any{h.Problems, h.Faults} {
		for _, v := range reflect.ValueOf(texts).Seq2() {
			if text := v.String(); len(text) > maxText || strings.ContainsAny(text, "\n\x1b") {
				t.Fatalf("problem %q", text)
			}
		}
	}
	s = egretv1.EgressNodeStatus{BootID: "b", ObjectProblems: []egretv1.Problem{
		{Kind: ref.EgressIP, Name: "e", Message: strings.Repeat("x", 100<<10)}}}
	if have := Holding(&egretv1.EgressNode{Status: s}).Problems["e"]; len(have) != maxText {
		t.Errorf("a problem of 100 KiB has %d bytes", len(have))
	}
}
