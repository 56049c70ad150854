// Package handover has what deciders about EgressIPs and EgressServices have in common: who is waited for until an
// object's pods leave with its addresses, how long a former holder goes on, which node can take what, and which pods
// concern which object.
//
// In: the world, with what was decided in the place of what the API shows, what it shows, and the time. Out: former
// holders, nodes that are waited for, counts of pods.
package handover
