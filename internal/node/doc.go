// Package node is a node's agent: it keeps this node's targets equal to the plan of the world.
//
// In: changes of the world, from Kubernetes, from this host and from CNI calls. Out: the planes applied, in one order;
// a report to other nodes about held addresses and about what targets refused; Events.
package node
