package egress

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Contents of an object's sets. A name ends with them and the family.
const (
	LocalPods      = "local"           // this node's pods, which the object's policy leads to holders, or drops
	Destinations   = plan.Destinations // where the object serves its pods
	PartlyFiltered = "guarded"         // this node's pods under the leak filter as to the object's destinations alone
)

// ParseName returns the object that the name of a row or a set begins with, as in "egressip/NAME/local.v4", and what
// comes behind it: "local" and "v4", or "v4" alone. The object is zero if the name is not an object's.
func ParseName(name string) (object ref.Object, has, family string) {
	kind, rest, _ := strings.Cut(name, "/")
	i := max(0, strings.LastIndex(rest, "/"))
	if object = ref.OfKey(rest[:i]); i == 0 || strings.ToLower(object.Kind) != kind {
		return ref.Object{}, "", ""
	}
	has, family, two := strings.Cut(rest[i+1:], ".")
	if !two {
		has, family = "", has
	}
	return object, has, family
}

// IsLeakFilter says whether a set of the host's is of pods under the leak filter, whatever they send or as to some
// destinations.
func IsLeakFilter(set string) bool {
	_, has, _ := ParseName(set)
	return has == PartlyFiltered || set == FilteredPods(world.V4) || set == FilteredPods(world.V6)
}

// PartlyServedPods is the address set of this node's pods that are under the leak filter as to some destinations alone.
func PartlyServedPods(f world.Family) string { return "egressip-partly-served-pods." + f.String() }

// PausedPods is the address set of this node's pods with paused egress.
func PausedPods(f world.Family) string { return "egressip-held-pods." + f.String() }

// NodeIPs is the address set of what pods reach with their node's address, wherever their other packets leave.
func NodeIPs(f world.Family) string { return "node-ips." + f.String() }

// HostNodeIPs is the same set in nftables.
func HostNodeIPs(f world.Family) string { return "egress-node-ips." + f.String() }

// AddNode has pods reach an address with their node's. One of a family that the cluster does not have is left out:
// there is no set for it.
func AddNode(w *world.View, ip netip.Addr, out *plan.Rows) {
	f := world.FamilyOf(ip)
	if len(w.Config.Cluster(f)) == 0 {
		return
	}
	out.AddElem(NodeIPs(f), ip.String())
	plan.Add(&out.SourceExempt, ip, plan.None{})
	if ThroughHost(w) {
		Host{f, out}.AddSet(HostNodeIPs(f))
		plan.Add(&out.NFTElems, plan.NFTElem{Set: HostNodeIPs(f), Key: ip.String()}, "")
	}
}

// AddrType is an address's type in nftables.
func AddrType(f world.Family) string { return [...]string{"ipv4_addr", "ipv6_addr"}[f] }

// IP is the header's name in nftables: "ip" or "ip6".
func IP(f world.Family) string { return [...]string{"ip", "ip6"}[f] }

// NotTo is what a rule of nftables asks of a packet that goes to none of some subnets; it begins with a space.
func NotTo(f world.Family, subnets []netip.Prefix) string {
	var text strings.Builder
	for _, p := range subnets {
		text.WriteString(" " + IP(f) + " daddr != " + p.String())
	}
	return text.String()
}

// Short keeps an object's key within what names in nftables may have; a hash tells long ones apart.
func Short(key string) string {
	const limit, kept = 80, 60
	if len(key) <= limit {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:kept] + "-" + hex.EncodeToString(sum[:8])
}

// ShortFor is Short of an object's key and an address. No key has '_' in it, and no name of a set may have ':'.
func ShortFor(key string, ip netip.Addr) string {
	return Short(key + "_" + strings.ReplaceAll(ip.String(), ":", "-"))
}
