// Package trace walks a packet over plans, in pure Go: what OVN, the gateway bridge and the host would do with it if every
// node held exactly its plan.State.
//
// In: the plans of the nodes, and a packet. Out: every end that the packet may come to (ECMP makes several), with the source it arrives
// with and the steps it took. Tests, `explain` and property tests of half-done applies ask it; a hermetic test holds it
// against ovn-trace on the same rows.
package trace
