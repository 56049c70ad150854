package zone

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Rejections per second of a node switch, and at once. ovn-controller makes each, and a pod can ask for any number: by
// packets to cluster IPs that no Service has, and to Services without endpoints. Further packets are dropped.
const (
	rejectsPerSecond = 1000
	rejectsAtOnce    = 2000
)

// rejectUnserved answers packets to an address in the ranges of cluster IPs that the node switch has not balanced: no
// Service has that address, or not with that port. Without it they would leave the cluster, or circle between host and
// router in local gateway mode. Packets that must not be answered are dropped: errors of ICMP, and all but the first
// fragment of a datagram (RFC 1122, 3.2.2), which OVS' userspace datapath does not balance when it opens a connection.
// In another network than the default one, its open Services are balanced further on.
func (z ownPart) rejectUnserved(sw plan.RowID) {
	for _, s := range z.w.Config.ServiceSubnets {
		f := world.FamilyOf(s.Addr())
		to := fmt.Sprintf("%s.dst == %s", f.Match(), s)
		if z.Name != ref.DefaultNetwork && len(z.Cluster(f)) == 0 {
			continue // no router of the network has a set of open Services of the family
		}
		if z.Name != ref.DefaultNetwork {
			to += fmt.Sprintf(" && %s.dst != $%s", f.Match(), plan.SetName(plan.OpenServiceIPs(f.String())))
		}
		echo := [...]string{"icmp4.type == 8", "icmp6.type == 128"}[f]
		id := z.names.Row("unserved/" + s.String())
		z.out.AddBalancedACL(id+"/reject", sw, plan.PriorityUnserved,
			to+" && !ip.later_frag && (tcp || udp || sctp || "+echo+")", "reject")
		z.out.AddBalancedACL(id+"/drop", sw, plan.PriorityUnservedDrop, to, "drop")
	}
}
