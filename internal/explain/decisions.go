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

// decisions are the objects that decide about such packets, and those that might and do not.
func (a Answer) decisions() string {
	if a.staysInside() {
		return "nobody: it stays in the cluster, and egress addresses concern what leaves it\n"
	}
	w := a.scope.w
	d := decision{w: w, pod: a.Pod, to: a.Packet.Dst, family: world.FamilyOf(a.Packet.Dst), ends: a.Ends}
	var out strings.Builder
	claims, unserved := w.Wanted(a.Pod, w.PrimaryNetwork(a.Pod.Namespace), d.family)
	for _, c := range claims {
		out.WriteString(d.claim(c))
	}
	for _, s := range d.standbys(unserved) {
		out.WriteString(d.standby(s))
	}
	out.WriteString(d.withoutFamily())
	if out.Len() == 0 {
		out.WriteString("nobody: no EgressIP selects the pod, and it is behind no Service with an EgressService; it " +
			"leaves with its node's address\n")
	}
	return out.String() + d.unselecting()
}

// decision is what is asked: about a pod's packets to an address.
type decision struct {
	w      *world.World
	pod    *world.Pod
	to     netip.Addr
	family world.Family
	ends   []trace.End
}

// claim says what an object with a claim to the pod's packets does with this one.
func (d decision) claim(c world.Claim) string {
	says := "decides"
	switch to := d.w.Destinations(c.By.Name, d.family); {
	case c.By.Kind == ref.EgressIP && !d.w.EgressIP(c.By.Name).TrafficUnknown && !to.Contains(d.to):
		says = "does not decide: it does so to " + someOf(to) + " alone"
	case !d.isSource(c.By) && !d.isHeld(c.By):
		says = "does not decide yet: no node says that it holds an address of it"
	case !d.isSource(c.By):
		says = "does not decide: its addresses are not for packets to " + d.to.String() + ", see the way"
	}
	return d.object(c.By, says)
}

// isSource says whether any packet that leaves does so as the object says; where all are dropped it may be its doing.
func (d decision) isSource(o ref.Object) bool {
	p := d.w.PlacementOf(o.Key())
	left := slices.DeleteFunc(slices.Clone(d.ends), func(e trace.End) bool { return e.Kind != trace.Outside })
	if s := d.w.EgressService(o.Key()); o.Kind == ref.EgressService && s.Host == world.HostAll || len(left) == 0 {
		return true
	}
	return slices.ContainsFunc(left, func(e trace.End) bool {
		return slices.ContainsFunc(p.Items, func(a world.Assignment) bool { return a.IP == e.Src }) ||
			slices.ContainsFunc(p.Leaving, func(l world.Leaving) bool { return l.IP == e.Src })
	})
}

// isHeld says whether any node holds an address of the object.
func (d decision) isHeld(o ref.Object) bool {
	p := d.w.PlacementOf(o.Key())
	return slices.ContainsFunc(p.Items, func(a world.Assignment) bool {
		return world.FamilyOf(a.IP) == d.family && len(d.w.Holders(o.Key(), a.IP)) > 0
	})
}

// standbys are all that have no claim: EgressIPs, and EgressServices that keep each other from one.
func (d decision) standbys(unserved []world.Standby) []world.Standby {
	services := slices.DeleteFunc(d.w.Standbys(d.pod, d.family), func(s world.Standby) bool {
		return s.By.Kind != ref.EgressService
	})
	return append(services, unserved...)
}

func (d decision) standby(s world.Standby) string {
	switch {
	case len(s.For) == 0 && s.By.Kind == ref.EgressIP && len(d.w.Destinations(s.By.Name, d.family)) == 0:
		return d.object(s.By, "selects the pod, and does not decide: it has no networks of IP"+d.family.String())
	case len(s.For) == 0:
		return d.object(s.By, "selects the pod, and does not decide: no node has an address of it")
	}
	names := make([]string, len(s.For))
	for i, c := range s.For {
		names[i] = c.By.String()
	}
	return d.object(s.By, "stands by for "+strings.Join(names, ", "))
}

// withoutFamily are the EgressIPs that select the pod and ask for no address of the packet's family.
func (d decision) withoutFamily() string {
	var out strings.Builder
	for _, e := range d.w.Selecting(d.pod) {
		if !e.Asks(d.family) {
			out.WriteString(d.object(ref.Of(ref.EgressIP, e.Name), "selects the pod, and asks for no address of IP"+
				d.family.String()))
		}
	}
	return out.String()
}

// unselecting are the EgressIPs that select other pods of the pod's namespace.
func (d decision) unselecting() string {
	namespace := d.w.Namespace(d.pod.Namespace)
	if namespace == nil {
		return ""
	}
	var lines []string
	for _, name := range d.w.EgressIPs() {
		e := d.w.EgressIP(name)
		if e.Namespaces.Matches(labels.Set(namespace.Labels)) && !e.Pods.Matches(labels.Set(d.pod.Labels)) {
			lines = append(lines, fmt.Sprintf("EgressIP/%s does not select the pod: its podSelector is %s\n", name,
				plain(e.Pods.String())))
		}
	}
	if more := len(lines) - mostOthers; more > 0 {
		lines = append(lines[:mostOthers], fmt.Sprintf("%d more EgressIPs select other pods of its namespace\n", more))
	}
	return strings.Join(lines, "")
}

// object is one object with what it does, its addresses and its conditions.
func (d decision) object(o ref.Object, says string) string {
	lines := []string{o.String() + " " + says}
	if p := d.w.PlacementOf(o.Key()); p != nil {
		lines = append(lines, d.addresses(o, p)...)
	}
	return strings.Join(append(lines, faults(conditions(d.w, o))...), "\n") + "\n"
}

// faults are the conditions that say that something is not as it should be. What one says as the one before it did is
// said once.
func faults(conditions []world.Condition) []string {
	bad := map[string]string{decide.ConditionFallback: "True", conditionOverlapped: "True"} // others: all but True
	var lines []string
	before := ""
	for _, c := range conditions {
		if is := bad[c.Type]; is == "" && c.Status == "True" || is != "" && c.Status != is {
			continue
		}
		line := fmt.Sprintf("  %s=%s %s", c.Type, c.Status, c.Reason)
		if c.Message != before {
			line += ": " + plain(c.Message)
		}
		lines, before = append(lines, line), c.Message
	}
	return lines
}

func conditions(w *world.World, o ref.Object) []world.Condition {
	if o.Kind == ref.EgressService {
		return w.EgressService(o.Key()).Conditions
	}
	return w.EgressIP(o.Name).Conditions
}

// addresses are the object's of the packet's family, each with where it is.
func (d decision) addresses(o ref.Object, p *world.Placement) []string {
	ips := []netip.Addr(nil)
	if e := d.w.EgressIP(o.Key()); o.Kind == ref.EgressIP {
		ips = e.IPs
	} else if s := d.w.EgressService(o.Key()); s.Host != world.HostAll {
		ips = s.Sources()
	} else {
		return []string{"  each node by its own links"}
	}
	var out []string
	for _, ip := range d.family.OfAddrs(ips) {
		out = append(out, "  "+ip.String()+" "+d.at(o, p, ip))
		for _, l := range p.Leaving {
			if l.IP == ip {
				out = append(out, fmt.Sprintf("  %s was on %s, which lets go of it since %s", ip, l.Node,
					l.Since.UTC().Format(time.RFC3339)))
			}
		}
	}
	return out
}

func (d decision) at(o ref.Object, p *world.Placement, ip netip.Addr) string {
	node := p.Assignee(ip)
	switch {
	case node == "":
		return "has no node"
	case d.w.Holds(node, o.Key(), ip):
		return "on " + node + ", which holds it"
	}
	text := "on " + node + ", which does not say that it holds it"
	if problem := d.w.Problem(node, o.Key()); problem != "" {
		text += ": " + plain(problem)
	}
	return text
}

// plain is a text of others on a line of a terminal.
func plain(text string) string { return world.Plain(text, 1024) }

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
