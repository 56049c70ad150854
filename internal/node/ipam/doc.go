// Package ipam gives the addresses of this node's pod subnets to pods.
//
// In: the node's subnets (one of each family at most) and the addresses that running pods hold. Out: for each owner one
// address of each family, with the same host offset where both are free. Nothing is remembered on disk: the running
// pods are the record. An address that was given back is the last to be given again.
package ipam
