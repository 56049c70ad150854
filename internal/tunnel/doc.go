// Package tunnel decides which other nodes are up and which are down, by the BFD sessions in the tunnels to them.
//
// In: the sessions as OVS reports them, and the time. Out: a Result with the nodes that change, whether no other node
// answers at all, and the time of the next step. It has no clock, no timer, no goroutine and no I/O.
package tunnel
