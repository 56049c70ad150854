// Package peer has agents ask each other whether they have followed what the asking one has seen of the API.
//
// In: the versions that the asking agent has seen, by kind. Out: no error once the other agent's world has these
// versions and its targets hold the rows that follow; and the versions that it has seen. A question is a GET at an
// agent's management port, over the tunnels that pods' packets take, from the asking node's own management port, which
// no pod can pretend to be, and from a source port below 1024, which no probe of a pod has.
package peer
