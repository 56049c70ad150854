package tally

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// mostAddresses bounds the series of addresses: each EgressIP may have 64.
const mostAddresses = 2000

// Descriptions of a tally's metrics.
var (
	assignedIPs = newDescription("egret_controller_assigned_egress_ips", "Egress IPs assigned to a node.", "node")
	// The node of an EgressService with sourceIPBy Network is ALL.
	assignedServices = newDescription("egret_controller_assigned_egress_services",
		"EgressServices that have the node as their host.", "node")
	unassignedIPs = newDescription("egret_controller_unassigned_egressips",
		"EgressIP objects that lack a node for an address.")
	unassignedServices = newDescription("egret_controller_unassigned_egressservices",
		"EgressService objects that have no host.")
	fallbackObjects = newDescription("egret_controller_fallback_objects",
		"Objects whose selected pods leave with their node's address, by kind and by why no address has a node.",
		"kind", "reason")
	notReadyObjects = newDescription("egret_controller_not_ready_objects",
		"Objects that are not Ready, by kind and by the reason of condition Ready.", "kind", "reason")
	overlappedPods = newDescription("egret_controller_overlapped_pods",
		"Pods that more than one EgressIP selects: one serves them, the others stand by.")
	conflicts = newDescription("egret_controller_address_conflicts",
		"EgressIP objects with an address that another machine says it has.")
	addressInfo = newDescription("egret_controller_egress_address_info",
		"1 for each address of an EgressIP or EgressService, with the node that it is assigned to as a label.",
		"kind", "namespace", "name", "ip", "node")
	addressesLeftOut = newDescription("egret_controller_egress_addresses_left_out",
		"Addresses without a series of egret_controller_egress_address_info, because there are too many.")
	askedAddresses = newDescription("ovnkube_clustermanager_num_egress_ips", // OVN-Kubernetes' name
		"The number of defined egress IP addresses.")
)

func newDescription(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe is part of prometheus.Collector.
func (t *Tally) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{assignedIPs, assignedServices, unassignedIPs, unassignedServices,
		fallbackObjects, notReadyObjects, overlappedPods, conflicts, addressInfo, addressesLeftOut, askedAddresses} {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (t *Tally) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tell := func(d *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	s := t.sumShares()
	for d, byNode := range map[*prometheus.Desc]map[string]int{assignedIPs: s.ips, assignedServices: s.services} {
		for node, n := range byNode {
			tell(d, n, node)
		}
	}
	for d, byReason := range map[*prometheus.Desc]map[[2]string]int{fallbackObjects: s.fallback,
		notReadyObjects: s.notReady} {
		for l, n := range byReason {
			tell(d, n, l[0], l[1])
		}
	}
	for d, n := range map[*prometheus.Desc]int{unassignedIPs: s.unassigned[ref.EgressIP],
		unassignedServices: s.unassigned[ref.EgressService], overlappedPods: s.standingByPods, conflicts: s.conflicts,
		askedAddresses: s.asked} {
		tell(d, n)
	}
	t.collectAddresses(tell)
}

// collectAddresses tells where the addresses of the first objects are.
func (t *Tally) collectAddresses(tell func(d *prometheus.Desc, value int, labels ...string)) {
	told, leftOut := 0, 0
	for _, o := range slices.SortedFunc(maps.Keys(t.shares), ref.Object.Compare) {
		for _, p := range slices.Compact(slices.SortedFunc(slices.Values(t.shares[o].places), byAddress)) {
			if told == mostAddresses {
				leftOut++
				continue
			}
			told++
			tell(addressInfo, 1, o.Kind, o.Namespace, o.Name, p.IP.String(), p.Node)
		}
	}
	tell(addressesLeftOut, leftOut)
}

func byAddress(a, b world.Assignment) int {
	return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Node, b.Node))
}
