package zone

import (
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

const (
	// neighboursASecond is how many neighbours a gateway router learns, by ARP, by neighbour solicitations and by
	// advertisements. Any machine on the link can tell it of as many as it likes, and each is a row of the Southbound.
	// What is known already costs nothing. With neighbourAge there are 15,000 of each at most.
	neighboursASecond = 50
	// neighboursAtOnce is how many of each it learns at once, as after a boot.
	neighboursAtOnce = 100
	// neighbourAge is after how many seconds without a packet to it a neighbour is forgotten, as with OVN-Kubernetes.
	neighbourAge = 300
)

// boundNeighbours bounds what a gateway router learns of the link, ovn-nb(5) "Copp". What it asks for itself is not
// bounded: packets to one host that is not there would keep others from being found.
func (z ownPart) boundNeighbours() plan.RowID {
	name := z.names.Row("egret-neighbours")
	copp, meter := plan.RowID{Table: "Copp", Name: name}, plan.RowID{Table: "Meter", Name: name}
	z.out.AddNB(plan.RowID{Table: "Meter_Band", Name: name}, meter, plan.Cols{
		"action": "drop", "rate": neighboursASecond, "burst_size": neighboursAtOnce,
	})
	z.out.AddNB(meter, plan.RowID{}, plan.Cols{"name": name, "unit": "pktps", "fair": true})
	z.out.AddNB(copp, plan.RowID{}, plan.Cols{"name": name, "meters": map[string]string{
		"arp": name, "nd-ns": name, "nd-na": name,
	}})
	return copp
}

// ages are the option mac_binding_age_threshold, ovn-nb(5) "Logical_Router": what is not heard of is forgotten, but for
// the gateways outside. A node that takes an egress IP over, and that no packet left through for a while, knows the way
// then.
func (z ownPart) ages() string {
	var ages []string
	for _, via := range z.Host.Gateways {
		ages = append(ages, via.String()+":0")
	}
	slices.Sort(ages)
	return strings.Join(append(ages, plan.Itoa(neighbourAge)), ";")
}
