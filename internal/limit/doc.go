// Package limit bounds what peers that nobody has authenticated can cost a server.
//
// In: a listener. Out: the same with bounds on connections in all, on those of a peer, on new ones a second, and on
// what a peer sends. A peer is an IP address. Connections beyond that are closed at once, so that they never fill the
// backlog. Where there are as many connections as there may be, a peer that has fewer than another takes the place of
// one of that peer's: many peers together cannot keep one out.
package limit
