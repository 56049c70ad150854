package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Answer is what becomes of a packet of a pod, by what the API has.
type Answer struct {
	Pod    *world.Pod
	Packet trace.Packet // with its source
	// Ends are where it may end, in order of what they say.
	Ends []trace.End
	// Doubts are what nodes know of this packet that the API does not: where there are any, Ends may be wrong.
	Doubts []string

	scope scope
}

// Ask finds the answer in a world that is of no node, by the kinds that are served. The packet has no source.
func Ask(kinds feature.Kinds, w *world.World, key string, p trace.Packet) (Answer, error) {
	pod, err := Pod(w, key)
	if err == nil {
		err = checkPod(w, pod)
	}
	if err == nil {
		p, err = Packet(w, pod, p)
	}
	if err == nil {
		err = checkAddresses(w, pod, p.Network.Network)
	}
	if err != nil {
		return Answer{}, err
	}
	s, err := scopeOf(kinds, w, pod, p)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Pod: pod, Packet: p, scope: s}
	plans, err := readPlans(s.plansByNode())
	if err != nil {
		return a, err
	}
	a.Ends = plans.Walk(p)
	slices.SortFunc(a.Ends, func(a, b trace.End) int { return strings.Compare(a.String(), b.String()) })
	if !a.staysInside() {
		a.Doubts = append(listDoubts(w, pod, world.FamilyOf(p.Dst)), a.newDecision().listDrops()...)
	}
	return a, nil
}

// checkPod says what a pod lacks that has no packets yet, or any longer.
func checkPod(w *world.World, pod *world.Pod) error {
	switch {
	case pod.Completed:
		return fmt.Errorf("pod %s has ended, and its addresses may be others' by now", pod.Key())
	case pod.Node != "" && w.Node(pod.Node) == nil:
		return fmt.Errorf("pod %s is on node %s, which Kubernetes does not have", pod.Key(), pod.Node)
	case pod.Node == "":
		return fmt.Errorf("pod %s has no node yet: kubectl describe pod says why", pod.Key())
	case len(pod.IPs) == 0:
		return fmt.Errorf("pod %s has no address yet: it is starting", pod.Key())
	}
	return nil
}

// checkAddresses says that a pod's addresses in a network are not its own.
func checkAddresses(w *world.World, pod *world.Pod, network string) error {
	if len(w.PodIPs(pod, network)) > 0 {
		return nil
	}
	return fmt.Errorf("pod %s has %v%s, which is not in the subnets %v of its node %s, or another pod's: Egret lets "+
		"no packet of it pass", pod.Key(), pod.SaidIn(network), inNetwork(network),
		w.Node(pod.Node).In(network).Subnets, pod.Node)
}

// staysInside says whether a packet that arrives does so inside. One for a Service may arrive inside and outside.
func (a Answer) staysInside() bool {
	is := func(kinds ...trace.Kind) bool {
		return slices.ContainsFunc(a.Ends, func(e trace.End) bool { return slices.Contains(kinds, e.Kind) })
	}
	return is(trace.ToPod, trace.ToHost) && !is(trace.Outside)
}

// Text is the answer for people.
func (a Answer) Text() string {
	var out strings.Builder
	out.WriteString(Title(a.Pod, a.Packet) + "\n")
	if len(a.Doubts) == 0 {
		out.WriteString(trace.Sentences(a.Ends) + "\n")
	} else {
		out.WriteString("its nodes alone know where it ends:\n" + indentLines(strings.Join(a.Doubts, "\n")+"\n"))
	}
	out.WriteString("\nWho decides about its source\n" + indentLines(a.describeDecisions()))
	if len(a.Doubts) == 0 {
		out.WriteString("\nIts way, as nodes are to have it\n" + indentLines(Steps(a.Ends)))
	}
	out.WriteString("\nWhat nodes have\n" + indentLines(a.proofCommands()))
	return out.String()
}

func indentLines(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}
