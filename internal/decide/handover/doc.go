// Package handover is the common part of the deciders for EgressIPs and EgressServices. It decides which nodes an
// object waits for until its pods leave with its addresses, how long a previous holder goes on, which node can take an
// address, and which pods concern which object.
//
// In: the world with decisions, the world as the API shows it, and the time. Out: former holders, nodes that are waited
// for, counts of pods.
package handover
