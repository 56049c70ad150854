// Package trace walks a packet over plans, in pure Go. It does what OVN, the gateway bridge and the host would do with
// the packet if every node held exactly its plan.State.
//
// In: the plans of the nodes, and a packet. Out: every end that the packet may come to (ECMP makes several), with the
// source it arrives with and the steps it took. Tests, `egret-node trace` and property tests of half-done applies ask
// it; a hermetic test holds it against ovn-trace on the same rows.
//
// The host's base chains are walked by hook and priority, as the kernel does, and no name of a chain means anything.
// Sysctls, and rules of the host that are not in the plan, are not walked.
//
// It guesses nothing: plans with a table, column, option, match, action or statement that it does not know are not
// read, and the error names the row and the text. A new form of rows must be added to the tracer.
package trace
