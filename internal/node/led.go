package node

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// formerLed is what a former process of this agent led its pods to, as the Northbound has it.
type formerLed struct {
	pods     map[ledPod][]ref.Object
	to       map[ref.Object]destinations.Set
	nextHops map[ref.Object][]netip.Addr
}

// ledPod is a pod's address in the network whose rows have a prefix.
type ledPod struct {
	prefix string
	ip     netip.Addr
}

// readLed reads what a former process of this agent led its pods to.
func (c *clearing) readLed(ctx context.Context, nb *ovn.Plane) {
	elems, err := nb.Elements(ctx)
	hops, unread := nb.SetColumn(ctx, plan.TablePolicy, "nexthops")
	if err = errors.Join(err, unread); err != nil {
		c.log.Warn("could not read which pods a former agent led to holders: they wait until these answer", "error", err)
	}
	led := parseLed(elems, hops)
	c.loop.Do(func(*world.World) { c.former = led })
}

// parseLed returns what sets and policies say of pods that are led.
func parseLed(elems []plan.SetElem, hops map[plan.RowID][]string) formerLed {
	led := formerLed{map[ledPod][]ref.Object{}, map[ref.Object]destinations.Set{}, map[ref.Object][]netip.Addr{}}
	prefixes := map[ref.Object][]netip.Prefix{}
	for _, e := range elems {
		network, row := plan.CutNetwork(e.Set)
		object, has, _ := egress.ParseName(row)
		switch ip, err := netip.ParseAddr(e.Addr); {
		case has == egress.Destinations:
			prefixes[object] = append(prefixes[object], parseNetwork(e.Addr))
		case has == egress.LocalPods && err == nil:
			pod := ledPod{network, ip}
			led.pods[pod] = append(led.pods[pod], object)
		}
	}
	for object, all := range prefixes {
		led.to[object] = destinations.Of(all...)
	}
	for id, all := range hops {
		_, row := plan.CutNetwork(id.Name)
		object, has, family := egress.ParseName(row)
		for _, text := range all {
			hop, err := netip.ParseAddr(text)
			if err == nil && has == "" && family == world.FamilyOf(hop).String() {
				led.nextHops[object] = append(led.nextHops[object], hop)
			}
		}
	}
	return led
}

// parseNetwork is what a set has: a network or an address; the zero one is no network.
func parseNetwork(text string) netip.Prefix {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	p, _ := netip.ParsePrefix(text)
	return p
}

// leadsTo reports whether packets of a family went to another node for an object.
func (l formerLed) leadsTo(w *world.World, object ref.Object, node string, f world.Family) bool {
	n := w.Node(node)
	return n != nil && slices.ContainsFunc(l.nextHops[object], func(hop netip.Addr) bool {
		return world.FamilyOf(hop) == f && w.Config.IsNextHop(hop, n.ID)
	})
}

// podsByNumber returns the pods of networks that are there, by the networks' numbers.
func (l formerLed) podsByNumber(w *world.World) map[world.PodAddr][]ref.Object {
	numbers, pods := map[string]int{}, map[world.PodAddr][]ref.Object{}
	for _, name := range w.Networks() {
		if n := w.Network(name); n != nil {
			numbers[plan.Names{Network: name, ID: n.ID}.Row("")] = n.ID
		}
	}
	for pod, by := range l.pods {
		if number, is := numbers[pod.prefix]; is {
			pods[world.PodAddr{Network: number, IP: pod.ip}] = by
		}
	}
	return pods
}

// beginMachine has the machine work, now that the cluster is known. Pods are led on where a former process of this boot
// led them, unless the object is another one since then, or is gone. This node's EgressNode says by which assignment
// they were led. After a restore of etcd it may be an older one: the Northbound must say the same.
func (c *clearing) beginMachine(w *world.World, bootID string) {
	former := clearance.Former{Nodes: [2]map[ref.Object][]string{{}, {}}, Pods: c.former.podsByNumber(w),
		To: c.former.to}
	if h := w.Holding(w.Self); h != nil && h.BootID == bootID {
		for key, led := range h.Steers {
			for _, to := range led {
				object, f := ref.OfKey(key), world.FamilyOf(to.IP)
				other := to.Node != w.Self && to.Node != ""
				if other && w.LedBefore(key, to) && c.former.leadsTo(w, object, to.Node, f) {
					former.Nodes[f][object] = append(former.Nodes[f][object], to.Node)
				}
			}
		}
	}
	c.machine.Begin(w, former)
}
