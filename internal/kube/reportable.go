package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// maxProblemBytes bounds problems, in each of their two forms.
const maxProblemBytes = 128 << 10

// fillReport adds problems, and leaves out what the schema of EgressNode or etcd would refuse, and the rest of the
// report with it. An address that is left out of holding counts as not held. For an object that is left out of steers,
// no other node knows where its pods are led. In both cases a problem says what to do.
func fillReport(node string, problems []world.Problem, s *egretv1.EgressNodeStatus) {
	s.Conflicts = s.Conflicts[:min(len(s.Conflicts), egretv1.MaxConflicts)]
	holding, steers := len(s.Holding)+len(s.HeldAddresses), len(s.Steers)+len(s.ObjectSteers)
	problems = limitProblems(node, ownFirst(problems))
	writeProblems(problems, s)
	s.Holding = s.Holding[:min(len(s.Holding), egretv1.MaxHolding)]
	s.Steers = s.Steers[:min(len(s.Steers), egretv1.MaxSteers)]
	s.HeldAddresses = s.HeldAddresses[:prefixWithin(s.HeldAddresses, maxObjectBytes, jsonSize)]
	s.ObjectSteers = s.ObjectSteers[:prefixWithin(s.ObjectSteers, maxObjectBytes, jsonSize)]
	others := len(s.HeldAddresses)
	fitReport(s)
	if n := len(s.Holding) + others; n < holding {
		const form = "the node holds %d egress IPs and can report %d: give it fewer, by more egress nodes"
		problems = slices.Insert(problems, 0, nodeProblem(node, world.ReasonHoldingCut, fmt.Sprintf(form, holding, n)))
	}
	if n := len(s.Steers) + len(s.ObjectSteers); n < steers {
		const form = "the node leads its pods to %d holders of egress IPs and can report %d: " +
			"run fewer selected pods on it"
		problems = slices.Insert(problems, 0, nodeProblem(node, world.ReasonSteersCut, fmt.Sprintf(form, steers, n)))
	}
	writeProblems(problems, s)
}

func nodeProblem(node, reason, text string) world.Problem {
	return world.Problem{Object: ref.Object{Kind: ref.Node, Name: node}, Reason: reason, Message: text}
}

// maxObjectBytes bounds each of two lists about objects that are not EgressIPs: the addresses that they have here, and
// the nodes that pods are led to for them. It is room for a thousand EgressServices.
const maxObjectBytes = 192 << 10

// notes is how many problems reportable may add.
const notes = 2

// ownFirst are problems with those first that are about the node and its links: if there are too many, these are told
// all the same. Addresses move away from a network because of them, and there are few.
func ownFirst(problems []world.Problem) []world.Problem {
	own := func(p world.Problem) int {
		if p.Object.Kind == ref.Node || p.Object.Kind == ref.Network {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(problems), func(a, b world.Problem) int { return own(a) - own(b) })
}

// limitProblems are as many problems as have room.
func limitProblems(node string, problems []world.Problem) []world.Problem {
	size := func(p world.Problem) int { return jsonSize(cutCharacters(p.String(), egretv1.MaxProblemLength)) }
	kept := prefixWithin(problems, maxProblemBytes, size)
	if kept == len(problems) && kept <= egretv1.MaxProblems-notes {
		return problems
	}
	kept = min(kept, egretv1.MaxProblems-notes-1)
	text := fmt.Sprintf("and %d problems more: see the agent's log", len(problems)-kept)
	return append(problems[:kept:kept], nodeProblem(node, world.ReasonMore, text))
}

func writeProblems(problems []world.Problem, s *egretv1.EgressNodeStatus) {
	s.Problems, s.ObjectProblems = problemTexts(problems), nil
	for _, p := range problems {
		s.ObjectProblems = append(s.ObjectProblems, egretv1.Problem{
			Kind: p.Object.Kind, Namespace: p.Object.Namespace, Name: reportableName(p.Object), Reason: p.Reason,
			Message: cutCharacters(p.Message, egretv1.MaxProblemLength),
		})
	}
}

// reportableName is an object's name as EgressNodes can have it. A network of pods may have any name, and one that the
// API server refuses would keep the whole report from it: other characters become dots. The message has the name.
func reportableName(o ref.Object) string {
	if o.Kind != ref.LogicalNetwork {
		return o.Name
	}
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' {
			return r
		}
		return '.'
	}, strings.ToLower(o.Name))
	return cmp.Or(strings.Trim(name[:min(len(name), maxProblemName)], "-."), "unnamed")
}

// maxProblemName is api/egret/v1's limit.
const maxProblemName = 253

// fitReport leaves out entries that have no room: first all assignment times, as in an earlier agent's report, then
// the ends of holding and steers. Each of these two has half of the room, and the rest of the other's half.
func fitReport(s *egretv1.EgressNodeStatus) {
	others := *s
	others.Holding, others.Steers = nil, nil
	room := egretv1.MaxStatusBytes - roomForNotes - jsonSize(others)
	holding, steers := sumSizes(s.Holding, heldSize), sumSizes(s.Steers, steeredSize)
	if holding+steers > room {
		dropTimes(s)
		holding, steers = sumSizes(s.Holding, heldSize), sumSizes(s.Steers, steeredSize)
		s.Holding = s.Holding[:prefixWithin(s.Holding, max(room/2, room-steers), heldSize)]
		s.Steers = s.Steers[:prefixWithin(s.Steers, max(room/2, room-holding), steeredSize)]
	}
}

// dropTimes leaves out since when egress IPs are held and steered to, and for which objects.
func dropTimes(s *egretv1.EgressNodeStatus) {
	for i := range s.Holding {
		s.Holding[i].Since, s.Holding[i].UID = "", ""
	}
	for i := range s.Steers {
		s.Steers[i].Since = ""
	}
}

// roomForNotes is more than what reportable adds when it has cut something.
const roomForNotes = 4 << 10

// heldSize counts the address in heldIPs, too.
func heldSize(h egretv1.Held) int { return jsonSize(h) + len(h.IP) + len(",") }

func steeredSize(s egretv1.Steered) int { return jsonSize(s) }

// jsonSize is what a value takes in a list. A value that cannot be marshalled has size 0.
func jsonSize[T any](v T) int {
	text, _ := json.Marshal(v)
	return len(text) + len(",")
}

func sumSizes[T any](list []T, size func(T) int) int {
	sum := 0
	for _, x := range list {
		sum += size(x)
	}
	return sum
}

// prefixWithin is how many of a list, from its start, take no more than that.
func prefixWithin[T any](list []T, room int, size func(T) int) int {
	for i, x := range list {
		if room -= size(x); room < 0 {
			return i
		}
	}
	return len(list)
}

// cutCharacters returns the start of a text, and an ellipsis if there is more.
func cutCharacters(s string, limit int) string {
	const more = "..."
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-len(more)]) + more
}
