// Package sandbox runs a whole Kubernetes cluster with Egret on one machine.
//
// In: Options, the Debian root folder and images of the cache, the product's binaries. Out: nodes, external hosts and a
// control plane, each in a network namespace of its own on one fabric bridge, which has a namespace too. Of the
// machine's own network a sandbox uses one listener on 127.0.0.1, for kubectl, and nothing else.
//
// The state is in the state folder (sandbox.json, one folder a node) and in the kernel. Every process of a sandbox
// carries the state folder's path in its environment (see processes.go), so that a killed sandbox can be taken over or
// removed without any other record.
package sandbox
