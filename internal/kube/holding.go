package kube

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Holding is what a node says it holds, as far as this program knows what is said.
func Holding(o *egretv1.EgressNode) *world.Holding {
	h := &world.Holding{Node: o.Name, BootID: o.Status.BootID, Holds: map[string][]netip.Addr{},
		HeldUID: map[world.EgressAddress]string{}}
	if h.BootID == "" {
		return h
	}
	problems := problemsOf(o)
	readProblems(h, problems)
	readAgentPort(h, &o.Status)
	readHeld(h, heldAddresses(&o.Status))
	cut := saysReason(problems, world.ReasonSteersCut)
	readObjectSteers(h, o.Status.ObjectSteers, cut)
	readSteers(h, o.Status.Steers, cut)
	readConflicts(h, o.Status.Conflicts)
	return h
}

func readHeld(h *world.Holding, list []egretv1.HeldAddress) {
	list, err := atMost(list, maxHeld)
	addUnreadProblem(h, "holding", err)
	seen := map[world.EgressAddress]bool{}
	for i, held := range list {
		key, known := keyOfHeld(held)
		if !known {
			continue // of a newer agent
		}
		a, err := parseAddr(held.IP)
		since, unreadable := ref.ParseSince(held.Since)
		if err = errors.Join(err, unreadable); err == nil && !isKey(key) {
			err = fmt.Errorf("%q is no name of an %s", key, held.Kind)
		}
		addUnreadProblem(h, fmt.Sprintf("holding[%d]", i), err)
		if one := (world.EgressAddress{Object: key, IP: a}); err == nil && !seen[one] {
			seen[one] = true
			h.Holds[key] = append(h.Holds[key], a)
			h.SayHeld(key, a, since)
			if held.UID != "" {
				h.HeldUID[one] = held.UID[:min(len(held.UID), maxUID)]
			}
		}
	}
	for _, ips := range h.Holds {
		slices.SortFunc(ips, netip.Addr.Compare)
	}
}

// readAgentPort reads where the agent answers others. An agent that knows nothing of that leaves the field as it is,
// and writes its version without the mark.
func readAgentPort(h *world.Holding, s *egretv1.EgressNodeStatus) {
	if !strings.HasSuffix(s.AgentVersion, egretv1.AnswersMark) {
		return
	}
	if s.AgentPort < 0 || s.AgentPort > math.MaxUint16 {
		addUnreadProblem(h, "agentPort", fmt.Errorf("%d is no TCP port", s.AgentPort))
		return
	}
	h.Port = uint16(s.AgentPort)
}

func readConflicts(h *world.Holding, list []egretv1.Conflict) {
	list, err := atMost(list, maxConflicts)
	addUnreadProblem(h, "conflicts", err)
	for i, c := range list {
		a, err := parseAddr(c.IP)
		mac, unreadable := world.ParseHardwareAddr(c.MAC)
		if err = errors.Join(err, unreadable); err == nil && !isName(c.EgressIP) {
			err = fmt.Errorf("%q is no name of an EgressIP", c.EgressIP)
		}
		if addUnreadProblem(h, fmt.Sprintf("conflicts[%d]", i), err); err == nil {
			noteConflict(h, c.EgressIP, world.Conflict{IP: a, MAC: mac})
		}
	}
}

// addUnreadProblem makes what cannot be read of an EgressNode a problem of its node.
func addUnreadProblem(h *world.Holding, field string, err error) {
	if err != nil {
		noteText(h, "", world.ReasonUnspecified, fmt.Sprintf("status.%s of its EgressNode: %v", field, err))
	}
}

func readSteers(h *world.Holding, list []egretv1.Steered, cut bool) {
	list, err := atMost(list, egretv1.MaxSteers)
	addUnreadProblem(h, "steers", err)
	for i, s := range list {
		a, err := parseAddr(s.IP)
		since, unreadable := ref.ParseSince(s.Since)
		if err = errors.Join(err, unreadable); err == nil && !(isName(s.EgressIP) && isName(s.Node)) {
			err = fmt.Errorf("%q and %q: one is no name", s.EgressIP, s.Node)
		}
		if addUnreadProblem(h, fmt.Sprintf("steers[%d]", i), err); err == nil {
			noteSteers(h, s.EgressIP, world.Assignment{Node: s.Node, IP: a}, since)
		}
	}
	if n := len(list); cut || n >= egretv1.MaxSteers { // there may be more, also of the last one
		h.SteersMore = true
		if n > 0 {
			delete(h.Steers, list[n-1].EgressIP)
		}
	}
}

// readObjectSteers reads what readSteers reads, of other kinds, and what is dropped, of all. Only the end of the list
// may be left out.
func readObjectSteers(h *world.Holding, list []egretv1.ObjectSteered, cut bool) {
	list, err := atMost(list, egretv1.MaxSteers)
	addUnreadProblem(h, "objectSteers", err)
	last := ""
	for i, s := range list {
		key, known := objectKey(ref.Object{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name})
		if !known {
			continue // of a newer agent
		}
		a, err := parseAddr(s.IP)
		since, unreadable := ref.ParseSince(s.Since)
		drops := s.Node == "" && a.IsUnspecified()
		if err = errors.Join(err, unreadable); err == nil && !(isKey(key) && (drops || isName(s.Node))) {
			err = fmt.Errorf("%q and %q: one is no name", key, s.Node)
		}
		if addUnreadProblem(h, fmt.Sprintf("objectSteers[%d]", i), err); err == nil {
			noteSteers(h, key, world.Assignment{Node: s.Node, IP: a}, since)
			last = key
		}
	}
	if cut && last != "" {
		delete(h.Steers, last)
	}
}

func noteSteers(h *world.Holding, key string, to world.Assignment, since ref.Since) {
	if h.Steers == nil {
		h.Steers = map[string][]world.Assignment{}
	}
	h.Steers[key] = append(h.Steers[key], to)
	h.SaySteers(key, to, since)
}

func noteConflict(h *world.Holding, egressIP string, c world.Conflict) {
	if h.Conflicts == nil {
		h.Conflicts = map[string][]world.Conflict{}
	}
	h.Conflicts[egressIP] = append(h.Conflicts[egressIP], c)
}

// EgressNode is the object that says what h says, owned by its Node, so that it goes with it. Problems in h are for
// this program alone; the argument problems goes to the others.
func EgressNode(h *world.Holding, nodeUID, agentVersion string, problems []world.Problem) *egretv1.EgressNode {
	o := &egretv1.EgressNode{
		TypeMeta: metav1.TypeMeta{APIVersion: egretv1.GroupVersion.String(), Kind: "EgressNode"},
		ObjectMeta: metav1.ObjectMeta{Name: h.Node, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: h.Node, UID: types.UID(nodeUID)},
		}},
		Status: egretv1.EgressNodeStatus{
			FormatVersion: egretv1.FormatVersion, BootID: h.BootID,
			AgentVersion: cutCharacters(agentVersion, egretv1.MaxAgentVersion),
		},
	}
	if h.Port != 0 {
		o.Status.AgentPort = int32(h.Port)
		o.Status.AgentVersion = cutCharacters(agentVersion, egretv1.MaxAgentVersion-len(egretv1.AnswersMark)) +
			egretv1.AnswersMark
	}
	writeHeld(h, &o.Status)
	writeSteers(h, &o.Status)
	writeConflicts(h, &o.Status)
	fillReport(h.Node, problems, &o.Status)
	o.Status.HoldingCount, o.Status.HeldIPs = int32(len(o.Status.Holding)), heldIPs(o.Status.Holding)
	return o
}

func writeHeld(h *world.Holding, s *egretv1.EgressNodeStatus) {
	for _, key := range slices.Sorted(maps.Keys(h.Holds)) {
		o := ref.OfKey(key)
		for _, ip := range sortedCopy(h.Holds[key], netip.Addr.Compare) {
			since, uid := h.Held(key, ip).String(), h.HeldUID[world.EgressAddress{Object: key, IP: ip}]
			if o.Kind == ref.EgressIP {
				s.Holding = append(s.Holding, egretv1.Held{EgressIP: key, IP: ip.String(), Since: since, UID: uid})
				continue
			}
			s.HeldAddresses = append(s.HeldAddresses, egretv1.HeldAddress{Kind: o.Kind, Namespace: o.Namespace,
				Name: o.Name, Network: ref.DefaultNetwork, IP: ip.String(), Since: since, UID: uid})
		}
	}
}

func writeSteers(h *world.Holding, s *egretv1.EgressNodeStatus) {
	for _, key := range slices.Sorted(maps.Keys(h.Steers)) {
		o := ref.OfKey(key)
		for _, to := range h.Steers[key] {
			since := h.SteersSince[world.Of{Object: key, Assignment: to}].String()
			if o.Kind == ref.EgressIP && to.Node != "" {
				s.Steers = append(s.Steers, egretv1.Steered{EgressIP: key, IP: to.IP.String(), Node: to.Node,
					Since: since})
				continue
			}
			s.ObjectSteers = append(s.ObjectSteers, egretv1.ObjectSteered{Kind: o.Kind, Namespace: o.Namespace,
				Name: o.Name, IP: to.IP.String(), Node: to.Node, Since: since})
		}
	}
}

func writeConflicts(h *world.Holding, s *egretv1.EgressNodeStatus) {
	for _, name := range slices.Sorted(maps.Keys(h.Conflicts)) {
		for _, c := range h.Conflicts[name] {
			s.Conflicts = append(s.Conflicts, egretv1.Conflict{EgressIP: name, IP: c.IP.String(), MAC: c.MAC.String()})
		}
	}
}

func heldIPs(holding []egretv1.Held) string {
	ips := make([]string, len(holding))
	for i, h := range holding {
		ips[i] = h.IP
	}
	return strings.Join(ips, ",")
}
