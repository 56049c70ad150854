// Package announce tells a link which addresses this node answers for.
//
// In: State.Announcements. Out: for each a gratuitous ARP (RFC 5227 announcement) or an unsolicited neighbor advertisement
// (RFC 4861 7.2.6) at once, again after 100 ms, 1 s and 3 s, for a first one may be lost, and from then on every minute, for a
// switch or a host may have forgotten. ovn-controller announces too, but a second late (OVN 25.03).
//
// Nothing on a link can be read back or removed: a new process announces everything anew, and Shrink only stops repeating.
package announce
