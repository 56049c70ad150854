package kube

import (
	"errors"
	"fmt"
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
	readProblems(h, o.Status.Problems)
	readHeld(h, o.Status.Holding)
	readSteers(h, o.Status.Steers)
	readConflicts(h, o.Status.Conflicts)
	return h
}

func readHeld(h *world.Holding, list []egretv1.Held) {
	list, err := atMost(list, maxHeld)
	unread(h, "holding", err)
	for i, held := range list {
		a, err := parseAddr(held.IP)
		if err == nil && !isName(held.EgressIP) {
			err = fmt.Errorf("%q is no name of an EgressIP", held.EgressIP)
		}
		unread(h, fmt.Sprintf("holding[%d]", i), err)
		if err == nil && !slices.Contains(h.Holds[held.EgressIP], a) {
			h.Holds[held.EgressIP] = append(h.Holds[held.EgressIP], a)
		}
	}
	for _, ips := range h.Holds {
		slices.SortFunc(ips, netip.Addr.Compare)
	}
}

func readConflicts(h *world.Holding, list []egretv1.Conflict) {
	list, err := atMost(list, maxConflicts)
	unread(h, "conflicts", err)
	for i, c := range list {
		a, err := parseAddr(c.IP)
		mac, unreadable := world.ParseHardwareAddr(c.MAC)
		if err = errors.Join(err, unreadable); err == nil && !isName(c.EgressIP) {
			err = fmt.Errorf("%q is no name of an EgressIP", c.EgressIP)
		}
		if unread(h, fmt.Sprintf("conflicts[%d]", i), err); err == nil {
			noteConflict(h, c.EgressIP, world.Conflict{IP: a, MAC: mac})
		}
	}
}

func readProblems(h *world.Holding, list []string) {
	list, err := atMost(list, maxProblems)
	for _, p := range list {
		noteProblem(h, p)
	}
	unread(h, "problems", err)
}

// unread makes what cannot be read of an EgressNode a problem of its node.
func unread(h *world.Holding, field string, err error) {
	if err != nil {
		noteText(h, "", fmt.Sprintf("status.%s of its EgressNode: %v", field, err))
	}
}

func readSteers(h *world.Holding, list []egretv1.Steered) {
	list, err := atMost(list, egretv1.MaxSteers)
	unread(h, "steers", err)
	for i, s := range list {
		a, err := parseAddr(s.IP)
		if err == nil && !(isName(s.EgressIP) && isName(s.Node)) {
			err = fmt.Errorf("%q and %q: one is no name", s.EgressIP, s.Node)
		}
		if unread(h, fmt.Sprintf("steers[%d]", i), err); err == nil {
			noteSteers(h, s.EgressIP, world.Assignment{Node: s.Node, IP: a})
		}
	}
	if n := len(list); n >= egretv1.MaxSteers { // there may be more, also of the last one
		h.SteersMore = true
		delete(h.Steers, list[n-1].EgressIP)
	}
}

func noteSteers(h *world.Holding, egressIP string, to world.Assignment) {
	if h.Steers == nil {
		h.Steers = map[string][]world.Assignment{}
	}
	h.Steers[egressIP] = append(h.Steers[egressIP], to)
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
		h.Faults[network] = plain(text)
		return
	}
	name, text := "", problem
	if rest, ok := strings.CutPrefix(problem, "egressip/"); ok {
		if n, t, ok := strings.Cut(rest, ": "); ok && isName(n) {
			name, text = n, t
		}
	}
	noteText(h, name, text)
}

func noteText(h *world.Holding, name, text string) {
	if h.Problems == nil {
		h.Problems = map[string]string{}
	}
	if h.Problems[name] == "" {
		h.Problems[name] = plain(text)
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
		Status: egretv1.EgressNodeStatus{FormatVersion: egretv1.FormatVersion, BootID: h.BootID, AgentVersion: agentVersion, Problems: slices.Clone(problems)},
	}
	for _, name := range slices.Sorted(maps.Keys(h.Holds)) {
		for _, ip := range sorted(h.Holds[name], netip.Addr.Compare) {
			o.Status.Holding = append(o.Status.Holding, egretv1.Held{EgressIP: name, IP: ip.String()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Steers)) {
		for _, to := range h.Steers[name] {
			o.Status.Steers = append(o.Status.Steers, egretv1.Steered{EgressIP: name, IP: to.IP.String(), Node: to.Node})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Conflicts)) {
		for _, c := range h.Conflicts[name] {
			o.Status.Conflicts = append(o.Status.Conflicts, egretv1.Conflict{EgressIP: name, IP: c.IP.String(), MAC: c.MAC.String()})
		}
	}
	reportable(&o.Status)
	o.Status.HoldingCount, o.Status.HeldIPs = int32(len(o.Status.Holding)), heldIPs(o.Status.Holding)
	return o
}

func heldIPs(holding []egretv1.Held) string {
	ips := make([]string, len(holding))
	for i, h := range holding {
		ips[i] = h.IP
	}
	return strings.Join(ips, ",")
}
