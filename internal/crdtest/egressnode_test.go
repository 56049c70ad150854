package crdtest_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/crdtest"
)

// filledNode is an EgressNode with a value in every field.
func filledNode() *egretv1.EgressNode {
	return &egretv1.EgressNode{
		TypeMeta:   metav1.TypeMeta{APIVersion: egretv1.GroupVersion.String(), Kind: "EgressNode"},
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: egretv1.EgressNodeStatus{
			FormatVersion: egretv1.FormatVersion,
			BootID:        "0d5c2f0e-8f3b-4c1a-9a53-6f1f4d8e7b11",
			AgentVersion:  "v0.1.0",
			Holding:       []egretv1.Held{{EgressIP: "e", IP: "172.18.0.33"}, {EgressIP: "f", IP: "fd00:18::33"}},
			HoldingCount:  2,
			HeldIPs:       "172.18.0.33,fd00:18::33",
			HeldAddresses: []egretv1.HeldAddress{
				{Kind: "EgressIP", Name: "e", Network: "default", IP: "172.18.0.33"},
				{Kind: "EgressService", Namespace: "default", Name: "web", Network: "blue_net", IP: "fd00:18::33"},
			},
			Steers: []egretv1.Steered{{EgressIP: "e", IP: "172.18.0.33", Node: "n1"}},
			ObjectSteers: []egretv1.ObjectSteered{
				{Kind: "EgressService", Namespace: "default", Name: "web", IP: "fd00:18::33", Node: "n2"},
				{Kind: "EgressIP", Name: "f", IP: "::"},
			},
			Problems: []string{"the gateway interface has no link"},
			ObjectProblems: []egretv1.Problem{
				{Kind: "Network", Name: "fd00:19::/64", Reason: "NetworkFault", Message: "eth1 is down"},
				{Kind: "Service", Namespace: "default", Name: "web", Reason: "Refused"},
			},
			Conflicts: []egretv1.Conflict{{EgressIP: "e", IP: "172.18.0.33", MAC: "02:00:00:00:00:09"}},
		},
	}
}

func TestEgressNodeSchemaHasEveryField(t *testing.T) {
	crd := crdtest.Load(t, "egressnodes")
	object := asMap(t, filledNode())
	if unknown := crd.Unknown(object); len(unknown) > 0 {
		t.Errorf("the CRD lacks %v: run go generate -C api ./...", unknown)
	}
	if refusals := crd.Refusals(object); len(refusals) > 0 {
		t.Errorf("refused: %v", refusals)
	}
}

func TestNodeThatHoldsNothingIsAccepted(t *testing.T) {
	node := filledNode()
	node.Status.Holding, node.Status.HoldingCount = nil, 0
	if refusals := crdtest.Load(t, "egressnodes").Refusals(asMap(t, node)); len(refusals) > 0 {
		t.Errorf("refused: %v", refusals)
	}
}

func TestRefusedEgressNodes(t *testing.T) {
	crd := crdtest.Load(t, "egressnodes")
	for name, c := range map[string]struct {
		change func(*egretv1.EgressNodeStatus)
		want   string
	}{
		"count is wrong": {func(s *egretv1.EgressNodeStatus) { s.HoldingCount = 1 },
			"holdingCount must be the number of items of holding"},
		"no boot id":        {func(s *egretv1.EgressNodeStatus) { s.BootID = "" }, "status.bootID"},
		"no format version": {func(s *egretv1.EgressNodeStatus) { s.FormatVersion = 0 }, "status.formatVersion"},
		"no address":        {func(s *egretv1.EgressNodeStatus) { s.Holding[1].IP = "" }, "status.holding[1].ip"},
		"nameless": {func(s *egretv1.EgressNodeStatus) { s.Holding[0].EgressIP = "" },
			"status.holding[0].egressIP"},
		"no name": {func(s *egretv1.EgressNodeStatus) { s.Holding[0].EgressIP = "a\nb" },
			"status.holding[0].egressIP"},
		"long name": {func(s *egretv1.EgressNodeStatus) { s.Holding[0].EgressIP = strings.Repeat("a", 254) },
			"status.holding[0].egressIP"},
		"not an address": {func(s *egretv1.EgressNodeStatus) { s.Holding[0].IP = "172.18.0.300" },
			"is not an IP address"},
		"conflict nowhere": {func(s *egretv1.EgressNodeStatus) { s.Conflicts[0].IP = "here" }, "is not an IP address"},
		"steered nowhere":  {func(s *egretv1.EgressNodeStatus) { s.Steers[0].Node = "a b" }, "status.steers[0].node"},
		"MAC and more": {func(s *egretv1.EgressNodeStatus) { s.Conflicts[0].MAC = "02:00:00:00:00:09,a" },
			"status.conflicts[0].mac"},
		"boot id and more": {func(s *egretv1.EgressNodeStatus) { s.BootID = "a b" }, "status.bootID"},
		"long boot id": {func(s *egretv1.EgressNodeStatus) { s.BootID = strings.Repeat("a", 65) },
			"status.bootID"},
		"long version": {func(s *egretv1.EgressNodeStatus) { s.AgentVersion = strings.Repeat("a", 129) },
			"status.agentVersion"},
		"column of text": {func(s *egretv1.EgressNodeStatus) { s.HeldIPs = "see https://example.org" },
			"status.heldIPs"},
		"long problem": {func(s *egretv1.EgressNodeStatus) { s.Problems[0] = strings.Repeat("ä", 1025) },
			"status.problems[0]"},
		"many problems": {func(s *egretv1.EgressNodeStatus) { s.Problems = slices.Repeat(s.Problems, 257) },
			"status.problems"},
		"many conflicts": {func(s *egretv1.EgressNodeStatus) { s.Conflicts = slices.Repeat(s.Conflicts, 257) },
			"status.conflicts"},
		"many addresses": {func(s *egretv1.EgressNodeStatus) {
			s.Holding, s.HoldingCount = slices.Repeat(s.Holding, 4097), 8194
		}, "status.holding"},
	} {
		t.Run(name, func(t *testing.T) {
			node := filledNode()
			c.change(&node.Status)
			have := strings.Join(crd.Refusals(asMap(t, node)), "\n")
			if !strings.Contains(have, c.want) {
				t.Errorf("want a refusal with %q, have %q", c.want, have)
			}
		})
	}
}

// TestRefusedTypedEntries: the typed entries are bounded as the old ones are.
func TestRefusedTypedEntries(t *testing.T) {
	crd, long := crdtest.Load(t, "egressnodes"), strings.Repeat("a", 254)
	problems := filledNode().Status.ObjectProblems
	type status = egretv1.EgressNodeStatus
	for want, change := range map[string]func(*status){
		"status.objectSteers[0].node":       func(s *status) { s.ObjectSteers[0].Node = "a b" },
		"status.heldAddresses[0].kind":      func(s *status) { s.HeldAddresses[0].Kind = "Egress IP" },
		"status.heldAddresses[0].name":      func(s *status) { s.HeldAddresses[0].Name = long },
		"status.heldAddresses[1].name":      func(s *status) { s.HeldAddresses[1].Name = "a b" },
		"status.heldAddresses[0].network":   func(s *status) { s.HeldAddresses[0].Network = "" },
		"status.heldAddresses[1].namespace": func(s *status) { s.HeldAddresses[1].Namespace = long },
		"is not an IP address":              func(s *status) { s.HeldAddresses[0].IP = "here" },
		"status.heldAddresses":              func(s *status) { s.HeldAddresses = slices.Repeat(s.HeldAddresses, 4097) },
		"status.objectProblems[0].kind":     func(s *status) { s.ObjectProblems[0].Kind = "" },
		"status.objectProblems[0].name":     func(s *status) { s.ObjectProblems[0].Name = "see\nthis" },
		"status.objectProblems[0].reason":   func(s *status) { s.ObjectProblems[0].Reason = "no room" },
		"status.objectProblems[0].message":  func(s *status) { s.ObjectProblems[0].Message = strings.Repeat(long, 5) },
		"status.objectProblems":             func(s *status) { s.ObjectProblems = slices.Repeat(problems, 129) },
	} {
		node := filledNode()
		change(&node.Status)
		if have := strings.Join(crd.Refusals(asMap(t, node)), "\n"); !strings.Contains(have, want) {
			t.Errorf("want a refusal with %q, have %q", want, have)
		}
	}
}

func TestEgressNodeColumns(t *testing.T) {
	const want = `n1 | 2 | 172.18.0.33,fd00:18::33 | 0d5c2f0e-8f3b-4c1a-9a53-6f1f4d8e7b11 | 172.18.0.33 | ["the gateway interface has no link"] | v0.1.0 | <nil>`
	if have := crdtest.Load(t, "egressnodes").Row(t, asMap(t, filledNode())); have != want {
		t.Errorf("row\nhave %s\nwant %s", have, want)
	}
}
