// Package holder decides what this node does about the egress addresses that it announces: defend, yield, ask who
// else has them, renew the ARP reply lease; and how long it leads its pods' packets to a node that is to hold an
// address and does not say yet that it does.
//
// In: Facts, which are what the plan announces, what was received on the link, what Kubernetes says and whether it says
// anything, and the time. Out: a Result with the requests and packets to send, the changes of the world, and the time
// of the next step. It has no clock, no timer, no goroutine and no I/O.
package holder
