// Package peer has agents ask each other whether they have followed what the asking one has seen of the API.
//
// In: versions, by kind, of what the asking agent has seen. Out: no error once the other one's world has all of that,
// and its targets hold what follows, and the versions that it has seen. A question is a GET at an agent's management
// port, over the tunnels that pods' packets take, from the asking node's own management port, which no pod can pretend
// to be, and from a source port below 1024, which no probe of a pod has.
package peer
