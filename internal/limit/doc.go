// Package limit bounds what peers that nobody has authenticated can cost a server.
//
// In: a listener. Out: the same with bounds on connections in all, on those of a peer, on new ones a second, and on what a peer sends. A peer is an IP
// address. What goes beyond is closed at once, so that the backlog never fills with it.
package limit
