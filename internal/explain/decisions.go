package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// conditionOverlapped is feature egressip's: true where another object serves pods that an EgressIP selects.
const conditionOverlapped = "Overlapped"

// Bounds of a text: how many networks of an EgressIP, and how many EgressIPs that do not select the pod, are named.
const (
	mostNetworks = 4
	mostOthers   = 8
)

// describeDecisions are the objects that decide about such packets, and those that might and do not.
func (a Answer) describeDecisions() string {
	if a.staysInside() {
		return "nobody: it stays in the cluster, and egress addresses concern what leaves it\n"
	}
	w, d := a.scope.w, a.newDecision()
	var out strings.Builder
	claims, unserved := w.Wanted(a.Pod, w.PrimaryNetwork(a.Pod.Namespace), d.family)
	for _, c := range claims {
		out.WriteString(d.describeClaim(c))
	}
	for _, s := range d.allStandbys(unserved) {
		out.WriteString(d.describeStandby(s))
	}
	out.WriteString(d.inactiveServices(claims) + d.withoutFamily() + a.scope.kinds.ExplainPacket(w, a.Pod, a.Ends))
	if out.Len() == 0 {
		out.WriteString("nobody: no EgressIP selects the pod, and it is behind no Service with an EgressService; it " +
			"leaves with its node's address\n")
	}
	return out.String() + d.unselectingEgressIPs()
}

// newDecision returns what the answer is about.
func (a Answer) newDecision() decision {
	return decision{w: a.scope.w, pod: a.Pod, to: a.Packet.Dst, family: world.FamilyOf(a.Packet.Dst), ends: a.Ends,
		doubtful: len(a.Doubts) > 0}
}

// decision is what is asked: about a pod's packets to an address.
type decision struct {
	w      *world.World
	pod    *world.Pod
	to     netip.Addr
	family world.Family
	ends   []trace.End
	// doubtful: ends may be wrong.
	doubtful bool
}

// describeClaim says what an object with a claim to the pod's packets does with this one.
func (d decision) describeClaim(c world.Claim) string {
	says := "decides"
	switch {
	case !d.isClaimed(c):
		says = "does not decide: it does so to " + someOf(d.w.Destinations(c.By.Name, d.family)) + " alone"
	case d.awaitsHolder(c):
		says = notYet
	case d.doubtful, d.isSource(c.By):
	case d.isDroppedBy(c.By):
		says = "decides, and has it dropped"
	case !d.isHeld(c.By):
		says = notYet
	case len(d.outsideEnds()) == 0:
		says = "would decide, but the packet is dropped by others, see the way"
	default:
		says = "does not decide: its addresses are not for packets to " + d.to.String() + ", see the way"
	}
	return d.describeObject(c.By, says)
}

const notYet = "does not decide yet: no node says that it holds an address of it"

// isClaimed reports whether the packet leaves to one of the claim's destinations.
func (d decision) isClaimed(c world.Claim) bool {
	if c.By.Kind != ref.EgressIP || d.w.EgressIP(c.By.Name).TrafficUnknown {
		return true
	}
	return slices.ContainsFunc(d.leavingDestinations(), d.w.Destinations(c.By.Name, d.family).Contains)
}

// outsideEnds are the ends outside.
func (d decision) outsideEnds() []trace.End {
	return slices.DeleteFunc(slices.Clone(d.ends), func(e trace.End) bool { return e.Kind != trace.Outside })
}

// leavingDestinations are those with which the packet leaves: a Service's address is translated before.
func (d decision) leavingDestinations() []netip.Addr {
	var out []netip.Addr
	for _, e := range d.outsideEnds() {
		out = append(out, e.Dst)
	}
	if len(out) == 0 {
		return []netip.Addr{d.to}
	}
	return out
}

// isSource says whether any packet that leaves does so as the object says.
func (d decision) isSource(o ref.Object) bool {
	p := d.w.PlacementOf(o.Key())
	return slices.ContainsFunc(d.outsideEnds(), func(e trace.End) bool {
		return slices.ContainsFunc(p.Items, func(a world.Assignment) bool { return a.IP == e.Src }) ||
			slices.ContainsFunc(p.Leaving, func(l world.Leaving) bool { return l.IP == e.Src })
	})
}

// isDroppedBy says whether a row of the object drops the packet.
func (d decision) isDroppedBy(o ref.Object) bool {
	row := strings.ToLower(o.Kind) + "/" + o.Key() + "/"
	return slices.ContainsFunc(d.ends, func(e trace.End) bool {
		return e.Kind == trace.Dropped && strings.Contains(e.Why, row)
	})
}

// isHeld says whether any node holds an address of the object.
func (d decision) isHeld(o ref.Object) bool {
	p := d.w.PlacementOf(o.Key())
	return slices.ContainsFunc(p.Items, func(a world.Assignment) bool {
		return world.FamilyOf(a.IP) == d.family && len(d.w.Holders(o.Key(), a.IP)) > 0
	})
}

// allStandbys are all that have no claim: EgressIPs, and EgressServices that keep each other from one.
func (d decision) allStandbys(unserved []world.Standby) []world.Standby {
	services := slices.DeleteFunc(d.w.Standbys(d.pod, d.family), func(s world.Standby) bool {
		return s.By.Kind != ref.EgressService
	})
	return append(services, unserved...)
}

func (d decision) describeStandby(s world.Standby) string {
	switch {
	case len(s.For) == 0 && s.By.Kind == ref.EgressIP && len(d.w.Destinations(s.By.Name, d.family)) == 0:
		return d.describeObject(s.By, "selects the pod, and does not decide: it has no networks of IP"+d.family.String())
	case len(s.For) == 0:
		return d.describeObject(s.By, "selects the pod, and does not decide: no node has an address of it")
	}
	names := make([]string, len(s.For))
	for i, c := range s.For {
		names[i] = c.By.String()
	}
	return d.describeObject(s.By, "stands by for "+strings.Join(names, ", "))
}

// inactiveServices are the EgressServices that have the pod as an endpoint, and give it nothing.
func (d decision) inactiveServices(claims []world.Claim) string {
	var out strings.Builder
	for _, s := range d.w.EgressServicesOf(d.pod, d.family) {
		o := ref.Of(ref.EgressService, s.Key())
		if !slices.Contains(claims, world.Claim{By: o}) && !d.w.EgressServiceActive(s.Key(), d.family) {
			out.WriteString(d.describeObject(o, "has the pod, and does not decide: nothing is configured for it"))
		}
	}
	return out.String()
}

// withoutFamily are the EgressIPs that select the pod and ask for no address of the packet's family.
func (d decision) withoutFamily() string {
	var out strings.Builder
	for _, e := range d.w.Selecting(d.pod) {
		if !e.Asks(d.family) {
			out.WriteString(d.describeObject(ref.Of(ref.EgressIP, e.Name),
				"selects the pod, and asks for no address of IP"+d.family.String()))
		}
	}
	return out.String()
}

// unselectingEgressIPs are the EgressIPs that select other pods of the pod's namespace.
func (d decision) unselectingEgressIPs() string {
	namespace := d.w.Namespace(d.pod.Namespace)
	if namespace == nil {
		return ""
	}
	var lines []string
	for _, name := range d.w.EgressIPs() {
		e := d.w.EgressIP(name)
		if e.Namespaces.Matches(labels.Set(namespace.Labels)) && !e.Pods.Matches(labels.Set(d.pod.Labels)) {
			lines = append(lines, fmt.Sprintf("EgressIP/%s does not select the pod: its podSelector is %s\n", name,
				plainText(e.Pods.String())))
		}
	}
	if more := len(lines) - mostOthers; more > 0 {
		lines = append(lines[:mostOthers], fmt.Sprintf("%d more EgressIPs select other pods of its namespace\n", more))
	}
	return strings.Join(lines, "")
}

// describeObject is one object with what it does, its addresses and its conditions.
func (d decision) describeObject(o ref.Object, says string) string {
	lines := []string{o.String() + " " + says}
	if p := d.w.PlacementOf(o.Key()); p != nil {
		lines = append(lines, d.describeAddresses(o, p)...)
	}
	return strings.Join(append(lines, faultyConditions(conditionsOf(d.w, o))...), "\n") + "\n"
}

// faultyConditions are the conditions that say that something is not as it should be. A line that repeats the line
// above it is left out.
func faultyConditions(conditions []world.Condition) []string {
	bad := map[string]string{decide.ConditionFallback: "True", conditionOverlapped: "True"} // others: all but True
	var lines []string
	before := ""
	for _, c := range conditions {
		if is := bad[c.Type]; is == "" && c.Status == "True" || is != "" && c.Status != is {
			continue
		}
		line := fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
		if c.Message != before {
			line += ": " + c.Message
		}
		lines, before = append(lines, "  "+plainText(line)), c.Message
	}
	return lines
}

func conditionsOf(w *world.World, o ref.Object) []world.Condition {
	if o.Kind == ref.EgressService {
		return w.EgressService(o.Key()).Conditions
	}
	return w.EgressIP(o.Name).Conditions
}

// describeAddresses are the object's of the packet's family, those that it asks for and those that it has, each with
// where it is.
func (d decision) describeAddresses(o ref.Object, p *world.Placement) []string {
	if s := d.w.EgressService(o.Key()); o.Kind == ref.EgressService && s.Host == world.HostAll {
		return []string{"  each node by its own links"}
	}
	var out []string
	for _, ip := range d.family.OfAddrs(d.askedAddresses(o, p)) {
		out = append(out, "  "+ip.String()+" "+d.describeHolder(o, p, ip))
	}
	for _, l := range p.Leaving {
		if world.FamilyOf(l.IP) == d.family {
			out = append(out, fmt.Sprintf("  %s was on %s, which lets go of it since %s", l.IP, plainText(l.Node),
				l.Since.UTC().Format(time.RFC3339)))
		}
	}
	return out
}

// askedAddresses are the addresses of the spec, and those of the status.
func (d decision) askedAddresses(o ref.Object, p *world.Placement) []netip.Addr {
	var ips []netip.Addr
	if e := d.w.EgressIP(o.Key()); o.Kind == ref.EgressIP {
		ips = slices.Clone(e.IPs)
	}
	for _, a := range p.Items {
		if !slices.Contains(ips, a.IP) {
			ips = append(ips, a.IP)
		}
	}
	return ips
}

func (d decision) describeHolder(o ref.Object, p *world.Placement, ip netip.Addr) string {
	node := p.Assignee(ip)
	switch {
	case node == "":
		return "has no node"
	case d.w.Holds(node, o.Key(), ip):
		return "on " + node + ", which holds it"
	}
	text := "on " + node + ", which does not say that it holds it"
	if problem := d.w.Problem(node, o.Key()); problem != "" {
		text += ": " + plainText(problem)
	}
	return text
}

// plainText is a text of others on a line of a terminal.
func plainText(text string) string { return world.Plain(text, 1024) }

func someOf[T fmt.Stringer](list []T) string {
	texts := make([]string, 0, mostNetworks)
	for _, one := range list[:min(len(list), mostNetworks)] {
		texts = append(texts, one.String())
	}
	if more := len(list) - mostNetworks; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
