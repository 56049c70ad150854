// Package cniserver answers the CNI plugin's calls on the node: it attaches pods to the pod network and detaches them.
//
// In: requests (internal/cni) on a unix socket; the node's state, by the interface Node; the local Open vSwitch, by the
// interface Attachments. Out: a pod's address, its veth pair (podlink), its OVS port, its annotation; or an error and
// nothing left behind. Calls for one pod come one after the other, those for different pods at the same time.
//
// The OVS ports are the record of what is attached. Beside them a process remembers what it could not take away whole,
// for the port goes first: until it has, or ends. After that a DEL of the container finds the rest by its ID.
package cniserver
