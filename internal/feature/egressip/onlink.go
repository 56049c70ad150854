package egressip

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// ConditionNetworksServed is False while an EgressIP serves pods of users' networks and has an address on a link, with
// which none of them leaves. Its reason is that of an Event, too.
const (
	ConditionNetworksServed  = "NetworksServed"
	ReasonNetworkUnsupported = "NetworkNotSupported"
)

// LinkChecker decides one condition of EgressIPs: whether their addresses serve pods of users' networks. An address on
// a link beside a node's primary network does not (seed egress-ip.md, "EgressIP IP is assigned to a secondary host
// interface").
type LinkChecker struct {
	concerned
	pods     *handover.Pods
	networks map[packetsOf]map[string]int // pods by network of users
	news     map[string]struct{}          // EgressIPs with other networks than before
}

// packetsOf are those of a family that pods send and that an EgressIP has a claim to.
type packetsOf struct {
	egressIP string
	family   world.Family
}

// userPackets are packetsOf in a network of users.
type userPackets struct {
	packetsOf
	network string
}

// NewLinkChecker has decided nothing yet.
func NewLinkChecker(pods *handover.Pods) *LinkChecker {
	d := &LinkChecker{newConcerned(), pods, map[packetsOf]map[string]int{}, map[string]struct{}{}}
	handover.NewPodList(pods, listUserPackets, d.countPackets)
	return d
}

// listUserPackets lists those of a pod, by family and precedence.
func listUserPackets(w *world.View, p *world.Pod) (out []userPackets) {
	name := w.PrimaryNetwork(p.Namespace)
	if name == "" || name == ref.DefaultNetwork {
		return nil
	}
	for _, f := range w.Config.Families() {
		for _, c := range w.Claims(p, name, f) {
			if c.By.Kind == ref.EgressIP {
				out = append(out, userPackets{packetsOf{c.By.Name, f}, name})
			}
		}
	}
	return out
}

func (d *LinkChecker) countPackets(list []userPackets, n int) {
	for _, u := range list {
		counts := d.networks[u.packetsOf]
		if counts == nil {
			counts = map[string]int{}
			d.networks[u.packetsOf] = counts
		}
		before := counts[u.network]
		if counts[u.network] += n; counts[u.network] == 0 {
			delete(counts, u.network)
		}
		if len(counts) == 0 {
			delete(d.networks, u.packetsOf)
		}
		if before == 0 || before+n == 0 {
			d.news[u.egressIP] = struct{}{}
		}
	}
}

// NoteChanged takes in what changes.
func (d *LinkChecker) NoteChanged(e world.Entry) {
	d.pods.NoteChanged(e)
	d.concerned.NoteChanged(e)
}

// Decide says which EgressIPs have the condition, of those for which something has changed.
func (d *LinkChecker) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	d.pods.Update(v.World)
	d.Take(d.news)
	for _, e := range d.takeConcerned(v, d.Stale.Forget) {
		text, was := d.unservedText(d.Reading(v.World, e.Name), e), conditionOf(e, ConditionNetworksServed).Status != ""
		switch {
		case text != "":
			c := world.Condition{Type: ConditionNetworksServed, Status: "False", Reason: ReasonNetworkUnsupported,
				Message: text}
			var events []decide.Event
			if !was {
				events = []decide.Event{{Warning: true, Reason: c.Reason, Message: text}}
			}
			desired = append(desired, d.desiredCondition(v, e, c, events))
		case was:
			d.Objects[e.Name] = struct{}{}
			desired = append(desired, ofEgressIP(e, []world.Condition{{Type: ConditionNetworksServed}}, nil))
		}
	}
	return desired, time.Time{}
}

// unservedText says which addresses do not serve pods of which networks, and what to do; "": all do.
func (d *LinkChecker) unservedText(w *world.View, e *world.EgressIP) string {
	var said []string
	for _, i := range e.Items {
		networks := slices.Sorted(maps.Keys(d.networks[packetsOf{e.Name, world.FamilyOf(i.IP)}]))
		if n := w.Node(i.Node); n == nil || len(networks) == 0 || !isOnLink(n, i.IP) {
			continue
		}
		said = append(said, fmt.Sprintf("%s is not on the primary network of %s, and serves the default network only: "+
			"no pod of network %s leaves with it", i.IP, i.Node, decide.Some(networks)))
	}
	if len(said) == 0 {
		return ""
	}
	return strings.Join(said, "; ") + ". Use addresses of the nodes' primary network, or do not select these pods"
}
