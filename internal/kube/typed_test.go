package kube_test

import (
	"fmt"
	"net/netip"
	"testing"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

var (
	heldIP  = netip.MustParseAddr("172.18.0.33")
	trouble = []world.Problem{
		kube.Fault(netip.MustParsePrefix("172.19.1.0/24"), "eth1 is down"),
		{
			Object: ref.Object{Kind: ref.Node, Name: "n1"}, Reason: world.ReasonNoAnswer,
			Message: "process/northd: does not answer",
		},
		{Object: ref.Object{Kind: ref.EgressIP, Name: "e"}, Reason: world.ReasonRefused, Message: "nb refused a row"},
	}
)

func reported() *egretv1.EgressNode {
	h := &world.Holding{Node: "n1", BootID: "boot", Holds: map[string][]netip.Addr{"e": {heldIP}}}
	return kube.EgressNode(h, "uid", "v1", trouble)
}

// TestReportForms: a problem stands in words, and with its object. What is held stands in
// one list alone: each agent receives it with each change.
func TestReportForms(t *testing.T) {
	s := reported().Status
	have := fmt.Sprint(s.Holding, s.HeldAddresses)
	if want := "[{e 172.18.0.33  }] []"; have != want {
		t.Errorf("have %s, want %s", have, want)
	}
	want := "[network/172.19.1.0/24: eth1 is down process/northd: does not answer egressip/e: nb refused a row]"
	typed := "[{Network  172.19.1.0/24 NetworkFault eth1 is down} " +
		"{Node  n1 NoAnswer process/northd: does not answer} {EgressIP  e Refused nb refused a row}]"
	if fmt.Sprint(s.Problems) != want || fmt.Sprint(s.ObjectProblems) != typed {
		t.Errorf("have %v and %v\nwant %s and %s", s.Problems, s.ObjectProblems, want, typed)
	}
}

func address(kind, name, network string) egretv1.HeldAddress {
	return egretv1.HeldAddress{Kind: kind, Name: name, Network: network, IP: "172.18.0.45"}
}

// TestReportsAreReadAlike: a reader learns the same from a report of today, from an older agent's, which repeats what
// it holds in typed entries, and from a newer agent's.
func TestReportsAreReadAlike(t *testing.T) {
	both := reported()
	both.Status.HeldAddresses = append(both.Status.HeldAddresses, address(ref.EgressIP, "e", ref.DefaultNetwork))
	both.Status.HeldAddresses[0].IP = heldIP.String()
	newer := reported()
	newer.Status.FormatVersion = 7
	newer.Status.HeldAddresses = append(newer.Status.HeldAddresses,
		address("EgressService", "web", ref.DefaultNetwork), address(ref.EgressIP, "e", "blue"))
	for name, o := range map[string]*egretv1.EgressNode{
		"today": reported(), "both": both, "newer": newer,
	} {
		h := kube.Holding(o)
		if want := "map[e:[172.18.0.33]]"; fmt.Sprint(h.Holds) != want {
			t.Errorf("%s: holds %v, want %s", name, h.Holds, want)
		}
		want := "map[:process/northd: does not answer e:nb refused a row] map[172.19.1.0/24:eth1 is down]"
		if have := fmt.Sprint(h.Problems, " ", h.Faults); have != want {
			t.Errorf("%s: problems %s, want %s", name, have, want)
		}
	}
}
