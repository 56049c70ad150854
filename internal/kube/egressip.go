package kube

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// EgressIP is an EgressIP as the world has it.
func EgressIP(o *v1.EgressIP) *world.EgressIP {
	e := &world.EgressIP{
		Name: o.Name, UID: string(o.UID), Created: o.CreationTimestamp.Time, Generation: o.Generation,
		Version: o.ResourceVersion,
	}
	e.DropWhenUnassigned, e.UnassignedProblem = whenUnassigned(o.Annotations)
	override, problem := readAnnotation(o.Annotations, v1.AnnotationOverride, v1.OverrideNever)
	e.NeverOverridden, e.UnassignedProblem = override, bothProblems(e.UnassignedProblem, problem)
	e.Mark, e.MarkProblem = readMark(o.Annotations)
	e.Namespaces, e.Pods, e.SelectorProblem = podSelectors(&o.Spec)
	e.Traffic, e.TrafficProblem = trafficSelector(&o.Spec)
	e.TrafficUnknown = e.TrafficProblem != ""
	e.Nodes = nodeSelector(&o.Spec)
	for i, s := range o.Spec.EgressIPs {
		a, err := parseAddr(s)
		switch {
		case err != nil:
			e.Problems = append(e.Problems,
				fmt.Sprintf("spec.egressIPs[%d]: %q is not an IP address: write one such as 172.18.0.33 or fd00:18::33",
					i, s))
		case slices.Contains(e.IPs, a):
			e.Problems = append(e.Problems, fmt.Sprintf("spec.egressIPs[%d]: %s is named twice: name each address once",
				i, a))
		default:
			e.IPs = append(e.IPs, a)
		}
	}
	readStatus(e, &o.Status)
	e.Altered = !equality.Semantic.DeepEqual(EgressIPStatus(e), o.Status)
	return e
}

func whenUnassigned(annotations map[string]string) (drop bool, problem string) {
	return readAnnotation(annotations, v1.AnnotationWhenUnassigned, v1.WhenUnassignedDrop)
}

// readAnnotation reads an annotation that can have one value. A mistyped value counts as this value: it must not give
// packets another source.
func readAnnotation(annotations map[string]string, name, value string) (is bool, problem string) {
	text, given := annotations[name]
	if !given || strings.EqualFold(strings.TrimSpace(text), value) {
		return given, ""
	}
	return true, plainText(fmt.Sprintf("annotation %s: %q is not %q: write that, or remove the annotation; until then it "+
		"counts as that", name, text, value))
}

// readMark reads an EgressIP's mark, in the one form that the controller writes.
func readMark(annotations map[string]string) (mark int, problem string) {
	text, given := annotations[v1.AnnotationEgressIPMark]
	if !given {
		return 0, ""
	}
	mark, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(mark) != text || mark < world.FirstMark || mark > world.LastMark {
		return 0, plainText(fmt.Sprintf("annotation %s: %q is not a number from %d to %d", v1.AnnotationEgressIPMark,
			text, world.FirstMark, world.LastMark))
	}
	return mark, ""
}

// bothProblems joins two problems, of which either may be none.
func bothProblems(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

// podSelectors reads those of pods; if one cannot be read, the object selects nothing.
func podSelectors(s *v1.EgressIPSpec) (namespaces, pods labels.Selector, problem string) {
	var out [2]labels.Selector
	for i, x := range [...]struct {
		field    string
		selector *metav1.LabelSelector
	}{
		{"namespaceSelector", &s.NamespaceSelector}, {"podSelector", &s.PodSelector},
	} {
		selector, err := metav1.LabelSelectorAsSelector(x.selector)
		if err != nil {
			return labels.Nothing(), labels.Nothing(),
				fmt.Sprintf("spec.%s: %v: mend it; until then no pod is selected", x.field, err)
		}
		out[i] = selector
	}
	return out[0], out[1], ""
}

// trafficSelector reads the selector of EgressIPTraffics; nil if the object has no readable one.
func trafficSelector(s *v1.EgressIPSpec) (traffic labels.Selector, problem string) {
	if s.TrafficSelector == nil {
		return nil, ""
	}
	traffic, err := metav1.LabelSelectorAsSelector(s.TrafficSelector)
	if err != nil {
		return nil, plainText(fmt.Sprintf("spec.trafficSelector: %v", err)) +
			": mend it; until then addresses stay on the nodes that host them, and get no others, " +
			"and the former selector counts; a node whose egret-node " +
			"starts meanwhile does not know that one, and drops what selected pods send outside if the EgressIP is in " +
			"force"
	}
	return traffic, ""
}

// nodeSelector reads the one of egress nodes.
func nodeSelector(s *v1.EgressIPSpec) world.NodeSelector {
	nodes, err := metav1.LabelSelectorAsSelector(&s.EgressNodeSelector)
	if err != nil {
		return world.NodeSelector{Problem: plainText(fmt.Sprintf("spec.egressNodeSelector: %v", err)) +
			": mend it; until then addresses stay on the nodes that host them, and get no others"}
	}
	return world.NodeSelector{Labels: nodes}
}

// readStatus leaves out entries that are not addresses: the controller rewrites the status.
func readStatus(e *world.EgressIP, s *v1.EgressIPStatus) {
	for _, i := range s.Items {
		if a, err := parseAddr(i.EgressIP); err == nil && isName(i.Node) {
			e.Items = append(e.Items, world.Assignment{Node: i.Node, IP: a})
			e.Given = appendGiven(e.Given, i.Node, a, i.Since)
		}
	}
	for _, l := range s.Leaving {
		if a, err := parseAddr(l.EgressIP); err == nil && isName(l.Node) {
			e.Leaving = append(e.Leaving, world.Leaving{Node: l.Node, IP: a, Since: l.Since.Time,
				Given: ref.SinceTime(l.Given.Time)})
		}
	}
	for _, ip := range s.Granted {
		if a, err := parseAddr(ip); err == nil {
			e.Granted = append(e.Granted, a)
		}
	}
	e.InForce, e.Conditions = inForce(s.InForce), convertConditions(s.Conditions)
}

// appendGiven adds since when a node should hold an address, if the status says so.
func appendGiven(all []world.Given, node string, ip netip.Addr, since metav1.MicroTime) []world.Given {
	if since.IsZero() {
		return all
	}
	a := world.Assignment{Node: node, IP: ip}
	return append(all, world.Given{Assignment: a, Since: ref.SinceTime(since.Time)})
}

// EgressIPStatus is the status that says what a world's EgressIP says.
func EgressIPStatus(e *world.EgressIP) v1.EgressIPStatus {
	var s v1.EgressIPStatus
	var nodes, ips []string
	for _, i := range e.Items {
		s.Items = append(s.Items, v1.EgressIPStatusItem{Node: i.Node, EgressIP: i.IP.String(),
			Since: metav1.NewMicroTime(e.Since(i).Time())})
		nodes, ips = append(nodes, i.Node), append(ips, i.IP.String())
	}
	for _, l := range e.Leaving {
		s.Leaving = append(s.Leaving, v1.EgressIPLeaving{Node: l.Node, EgressIP: l.IP.String(),
			Since: metav1.NewMicroTime(l.Since), Given: metav1.NewMicroTime(l.Given.Time())})
	}
	for _, ip := range e.Granted {
		s.Granted = append(s.Granted, ip.String())
	}
	s.AssignedNodes, s.AssignedEgressIPs = strings.Join(nodes, ","), strings.Join(ips, ",")
	s.InForce, s.Conditions = familiesOf(e.InForce), statusConditions(e.Conditions)
	return s
}
