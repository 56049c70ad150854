// Package probe finds out which nodes can be reached, and lets a node be found.
//
// In: nodes with their management addresses, and the time of silence after which one is dead. Out: the reachability of
// a node, reported when it changes. Two things are known of a node: its host, whose kernel accepts or refuses a TCP
// connection, and its agent, which answers grpc.health.v1. Every node is probed beside all others; a Judge, which does
// no I/O, draws the conclusions.
package probe
