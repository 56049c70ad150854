// Package announce tells a link which addresses this node answers for.
//
// In: State.Announcements. Out: for each a gratuitous ARP (RFC 5227 announcement) or an unsolicited neighbor
// advertisement (RFC 4861 7.2.6) at once, again after 100 ms, 1 s, 2 s and 5 s, for a first one may be lost, and from
// then on every minute, for a switch or a host may have forgotten. ovn-controller announces too, but a second late (OVN
// 25.03).
//
// Before each it asks who has the address (RFC 5227 2.1.1, RFC 4862 5.4.2) and does not wait for an answer, which is
// internal/plane/listen's matter: a failover is not delayed for a machine that should not be there.
//
// The addresses of the uplink's bridge itself are in no plan: when an agent starts, when one comes, and when they have
// another hardware address, Tell announces them at once and those first few times.
//
// Nothing on a link can be read back or removed: a new process announces everything again, and Shrink only stops
// repeating.
package announce
