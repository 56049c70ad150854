package kube

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/world"
)

// Holding is what a node says it holds. What is written in a newer form than this program knows holds nothing.
func Holding(o *egretv1.EgressNode) *world.Holding {
	h := &world.Holding{Node: o.Name, BootID: o.Status.BootID, Holds: map[string][]netip.Addr{}}
	if o.Status.FormatVersion > egretv1.FormatVersion || h.BootID == "" {
		return h
	}
	for _, held := range o.Status.Holding {
		if a, err := parseAddr(held.IP); err == nil && !slices.Contains(h.Holds[held.EgressIP], a) {
			h.Holds[held.EgressIP] = append(h.Holds[held.EgressIP], a)
		}
	}
	for _, p := range o.Status.Problems {
		noteProblem(h, p)
	}
	for _, c := range o.Status.Conflicts {
		if a, err := parseAddr(c.IP); err == nil {
			noteConflict(h, c.EgressIP, world.Conflict{IP: a, MAC: c.MAC})
		}
	}
	for _, ips := range h.Holds {
		slices.SortFunc(ips, netip.Addr.Compare)
	}
	return h
}

func noteConflict(h *world.Holding, egressIP string, c world.Conflict) {
	if h.Conflicts == nil {
		h.Conflicts = map[string][]world.Conflict{}
	}
	h.Conflicts[egressIP] = append(h.Conflicts[egressIP], c)
}

// noteProblem files a problem under the EgressIP that it starts with ("egressip/NAME: text"), under a subnet ("network/CIDR: text"), or under
// the node.
func noteProblem(h *world.Holding, problem string) {
	if network, text, ok := readFault(problem); ok {
		if h.Faults == nil {
			h.Faults = map[netip.Prefix]string{}
		}
		h.Faults[network] = text
		return
	}
	name, text := "", problem
	if rest, ok := strings.CutPrefix(problem, "egressip/"); ok {
		if n, t, ok := strings.Cut(rest, ": "); ok {
			name, text = n, t
		}
	}
	if h.Problems == nil {
		h.Problems = map[string]string{}
	}
	if h.Problems[name] == "" {
		h.Problems[name] = text
	}
}

// Fault is the problem that says why a subnet can host nothing.
func Fault(network netip.Prefix, why string) string {
	return "network/" + network.String() + ": " + why
}

func readFault(problem string) (network netip.Prefix, why string, ok bool) {
	rest, _ := strings.CutPrefix(problem, "network/")
	cidr, why, _ := strings.Cut(rest, ": ")
	network, err := netip.ParsePrefix(cidr)
	return network, why, err == nil && rest != problem
}

// EgressNode is the object that says what h says, owned by its Node, so that it goes with it.
func EgressNode(h *world.Holding, nodeUID, agentVersion string, problems []string) *egretv1.EgressNode {
	o := &egretv1.EgressNode{
		TypeMeta: metav1.TypeMeta{APIVersion: egretv1.GroupVersion.String(), Kind: "EgressNode"},
		ObjectMeta: metav1.ObjectMeta{Name: h.Node, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: h.Node, UID: types.UID(nodeUID)},
		}},
		Status: egretv1.EgressNodeStatus{FormatVersion: egretv1.FormatVersion, BootID: h.BootID, AgentVersion: agentVersion, Problems: problems},
	}
	var ips []string
	for _, name := range slices.Sorted(maps.Keys(h.Holds)) {
		for _, ip := range sorted(h.Holds[name], netip.Addr.Compare) {
			o.Status.Holding = append(o.Status.Holding, egretv1.Held{EgressIP: name, IP: ip.String()})
			ips = append(ips, ip.String())
		}
	}
	o.Status.HeldIPs = strings.Join(ips, ",")
	for _, name := range slices.Sorted(maps.Keys(h.Conflicts)) {
		for _, c := range h.Conflicts[name] {
			o.Status.Conflicts = append(o.Status.Conflicts, egretv1.Conflict{EgressIP: name, IP: c.IP.String(), MAC: c.MAC})
		}
	}
	o.Status.HoldingCount = int32(len(o.Status.Holding))
	return o
}
