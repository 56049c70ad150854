// Package clearance decides to which other nodes this node may lead its pods' packets, so that a node whose agent is
// dead, hung or cut off translates no packet for an object that has no claim to it any more.
//
// In: the entries of the world that change, the answers of nodes, the rest of a previous process, and the time. Out:
// changes of the world, and a Result with the nodes to ask whether they have followed the changes that this one has
// seen, and the time of the next step. It has no clock, no timer, no goroutine and no I/O.
package clearance
