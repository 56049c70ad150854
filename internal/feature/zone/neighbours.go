package zone

import (
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

const (
	// neighboursASecond is how many neighbours a gateway router learns, by ARP, by neighbour solicitations and by
	// advertisements. Any machine on the link can tell it of as many as it likes, and each is a row of the Southbound.
	// Packets to a known neighbour cost nothing. With neighbourAge there are 15,000 of each at most.
	neighboursASecond = 50
	// neighboursAtOnce is how many of each it learns at once, as after a boot.
	neighboursAtOnce = 100
	// neighbourAge is after how many seconds without a packet to it a neighbour is forgotten, as with OVN-Kubernetes.
	neighbourAge = 300
)

// learnNeighbours has a gateway router learn its neighbours outside from every request that it receives, also from
// those for an egress IP that another node has: when that comes here, the hosts that packets go to are known, if they
// were heard of lately. Until OVN 25.03 has resolved one it drops all but four packets to it, and that takes a round
// through the Southbound.
func (z ownPart) learnNeighbours(router plan.Cols) {
	options := router["options"].(map[string]string)
	options["always_learn_from_arp_request"], options["mac_binding_age_threshold"] = "true", z.bindingAges()
	router["copp"] = z.boundNeighbours()
}

// boundNeighbours bounds what a gateway router learns of the link, ovn-nb(5) "Copp". Its own questions are not
// bounded: packets to one absent host would otherwise keep others from being found.
func (z ownPart) boundNeighbours() plan.RowID {
	return z.addMeter("egret-neighbours", neighboursASecond, neighboursAtOnce, "arp", "nd-ns", "nd-na")
}

// addMeter bounds what ovn-controller receives of some kinds of packets, each kind for itself.
func (z ownPart) addMeter(name string, perSecond, burst int, kinds ...string) plan.RowID {
	name = z.names.Row(name)
	copp, meter := plan.RowID{Table: "Copp", Name: name}, plan.RowID{Table: "Meter", Name: name}
	z.out.AddNB(plan.RowID{Table: "Meter_Band", Name: name}, meter, plan.Cols{
		"action": "drop", "rate": perSecond, "burst_size": burst,
	})
	z.out.AddNB(meter, plan.RowID{}, plan.Cols{"name": name, "unit": "pktps", "fair": true})
	meters := map[string]string{}
	for _, kind := range kinds {
		meters[kind] = name
	}
	z.out.AddNB(copp, plan.RowID{}, plan.Cols{"name": name, "meters": meters})
	return copp
}

// bindingAges are the option mac_binding_age_threshold, ovn-nb(5) "Logical_Router": silent neighbours are forgotten,
// but for the gateways outside. A node that takes an egress IP over, and that no packet left through for a while,
// knows the way then.
func (z ownPart) bindingAges() string {
	var ages []string
	for _, via := range z.Host.Gateways {
		ages = append(ages, via.String()+":0")
	}
	slices.Sort(ages)
	return strings.Join(append(ages, plan.Itoa(neighbourAge)), ";")
}
