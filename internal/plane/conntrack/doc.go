// Package conntrack ends connections whose translated source is no longer right.
//
// In: State.Sources, the address that each pod's connections must have on a gateway router of this node, by
// destination; State.Destinations, which these are; State.SourceExempt, destinations that see the node's own address;
// and what the node's own addresses and pods are (Own). Out: no tracked connection of a pod with another source, in
// none of the zones that it passes. Where connections are tracked is a Target: ovs-vswitchd (Switch), for gateway
// routers, or the host's kernel (Kernel), for egress IPs on its links; a plane has one. OVN's ct(commit,nat) keeps a
// connection's first translation for its life, so a changed rule alone leaves old connections with the old address
// (law 3).
//
// Pods of a network beside the default one pass two gateway routers (State.Masquerades). The first gives them an
// address of the network, which the second, that of the default network, translates to what the outside sees. Their
// connections are found by the pod's address in the zone of the first, which has the port in the second, and are ended
// in both.
// Where the host's kernel translates instead, it gives all of them the node's address: nothing is ever wrong there.
//
// Datagrams is a second plane, on the host's kernel: in, State.Datagrams, the translations of addresses and ports of
// UDP and SCTP that the host makes for Services and for hostPorts of pods; out, no tracked connection to an endpoint
// that has gone. Balanced is a third one, on ovs-vswitchd, for those that OVN's load balancers make.
//
// The target holds connections, not rows of ours, so Grow has nothing to do. Shrink runs once the rules are new: an
// entry flushed earlier could come back with the old address. Where one other plane has all of these rules, Early need
// not wait for the rest.
package conntrack
