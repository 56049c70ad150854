package plan

import (
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/ref"
)

// These constants make up the flows of the gateway bridge: see feature gateway. Host and gateway routers share the
// node's addresses, and ct_mark in ZoneGateway tells whose a connection is.

// Patch is what the name of a network's patch port begins with where it stands for a number. PatchPort stands for the
// gateway bridge's patch port to OVN, which is the default network's; the plane puts the number in.
const (
	Patch     = "patch:"
	PatchPort = "{" + Patch + ref.DefaultNetwork + "}"
)

// PatchInterface is the name that ovn-controller gives to that patch port, after the localnet port.
func (n Names) PatchInterface(bridge, node string) string {
	return "patch-" + n.Localnet(bridge, node) + "-to-" + IntegrationBridge
}

// CommitOVN remembers that the connection of a packet from OVN is OVN's. A connection of the host stays the host's: a
// pod may have the same source port towards the same destination.
func CommitOVN() string {
	return fmt.Sprintf("ct(commit,zone=%d,exec(%s))", ZoneGateway, markOVN())
}

// CommitAs does the same, and translates the source to an address and one of PodPorts.
func CommitAs(src string) string {
	if strings.Contains(src, ":") { // before a port, ovs-actions(7) wants brackets
		src = "[" + src + "]"
	}
	return fmt.Sprintf("ct(commit,zone=%d,nat(src=%s:%s),exec(%s))", ZoneGateway, src, PodPorts, markOVN())
}

// markOVN makes a connection OVN's, and leaves the host's bit. OpenFlow 1.4 has no set_field for a part of a field.
func markOVN() string { return fmt.Sprintf("load:%#x->NXM_NX_CT_MARK[0]", ovnCTMark) }

// Leaves is how a packet leaves by the uplink once an action of conntrack has committed its connection.
//
// OVS in userspace holds fragments until it has all of a datagram. Those of which it has not after 15 s it puts among
// the packets that are in conntrack by then, whatever zone and connection these are of (OVS 3.5, lib/ipf.c,
// ipf_send_expired_frags), and they go on with the actions for these, translated by nobody. There another table looks
// at the source once more. The kernel drops such fragments, and nothing has to be looked at twice.
func Leaves(commit, uplink string, userspace bool) string {
	if !userspace {
		return commit + ",output:" + uplink
	}
	return fmt.Sprintf("%s,table=%d)", strings.TrimSuffix(commit, ")"), LetOut.Table())
}

// ARPAnew and NDAnew have OVS look at each announcement of a neighbour. In userspace it hears them for its tunnels only
// where it has no datapath flow for them (OVS 3.5, ofproto-dpif-xlate.c, terminate_native_tunnel), which lives until
// 10 s after the last packet: one with a hardware address that the neighbour had a moment ago too would be passed on,
// and what goes by the tunnel be sent to the address in between. The fields that are read here belong to the datapath
// flow's match, and plane/announce varies them each time.
const (
	ARPAnew = "move:NXM_NX_ARP_THA[]->NXM_NX_XXREG3[0..47],"
	NDAnew  = "move:NXM_NX_IPV6_LABEL[]->NXM_NX_XXREG3[0..19],"
)

// ToOVN gives a connection from outside to OVN, though the host may have had it.
func ToOVN() string { return commitAction(ovnCTMark) + ",output:" + PatchPort }

// CommitHost remembers that the connection is the host's.
func CommitHost() string { return commitAction(hostCTMark) }

// ToHost gives a connection from outside to the host.
func ToHost() string { return CommitHost() + ",LOCAL" }

func commitAction(mark int) string {
	return fmt.Sprintf("ct(commit,zone=%d,exec(set_field:%#x->ct_mark))", ZoneGateway, mark)
}

// OfOVN and OfHost match connections that were committed so.
func OfOVN() string { return fmt.Sprintf("ct_mark=%#x/%#x", ovnCTMark, ovnCTMark|hostCTMark) }

func OfHost() string { return fmt.Sprintf("ct_mark=%#[1]x/%#[1]x", hostCTMark) }
