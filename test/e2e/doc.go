// Package e2e tests a whole cluster with real packets: one sandbox for each gateway mode, its pods, its nodes and hosts
// outside it.
//
// In: EGRET_E2E=1, root, and the binaries of make build in bin/. EGRET_E2E_MODE (shared, the default, or local) and
// EGRET_E2E_FAMILY (dual, the default, ipv4 or ipv6; a sandbox of one family has other settings than the defaults)
// choose the sandbox, EGRET_E2E_HEALTHCHECK_PORT how its nodes are probed (0, the default: TCP port 9),
// EGRET_E2E_METALLB=1 one with MetalLB and EGRET_E2E_NODES=2 one of two nodes, for the tests of that and no others; one
// that is up is used as it is. EGRET_E2E_KEEP=1 leaves it up afterwards. EGRET_E2E_BIN is another folder of binaries.
// EGRET_E2E_MATRIX=1 tries in both gateway modes also what these do not differ in.
// Out: what arrived where, and with which source address.
//
// A steady state is looked at once; only right after a change is there a second look, for a bounded time.
package e2e
