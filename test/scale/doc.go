// Command scale measures what a cluster's size costs, without OVN and without packets: make scale runs it.
//
// In: a built bin/. Out: on stdout, the bytes that the API server sends to the agents, and the processor time of all
// programs, for a move of an address, a pod's start and a node's join, in clusters of several sizes; formulas fitted to
// these, and what they say of 5,000 nodes; and what one agent costs beside 50,000 pods. docs/scale.md says what is real
// and what is simulated.
package main
