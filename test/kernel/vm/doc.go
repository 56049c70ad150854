// Package vm tests Egret on a Debian kernel, in the virtual machine of `make test-kernel`: with the openvswitch module
// as datapath, with VRF, and with cgroup v2. Everywhere else its tests are skipped.
//
// In: nodes and hosts of a sandbox without Kubernetes, and an API server that serves what a test records in it. Out:
// what arrived where, with which source address. Nothing is measured: the machine is emulated, and many times slower
// than a real one.
package vm
