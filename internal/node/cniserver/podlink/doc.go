// Package podlink is a pod's interface: a veth pair between the node and the pod's network namespace.
//
// In: Spec, what the interface must be. Out: the pair, with addresses, routes and settings on the pod's side; or
// what differs from that (Verify). The end on the node carries nothing but the name that the OVS port has, and the
// node's own stack does not hear it (Seal).
package podlink
