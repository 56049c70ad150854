// Package harness is what programs and tests that run a sandbox share: bench, chaos and e2e.
//
// In: a sandbox that is up. Out: clients of its API, its pods and EgressIPs made and changed, nodes that exist in the
// API only, programs run inside nodes beside what is measured, a node's Northbound followed, and waiting with a limit.
package harness
