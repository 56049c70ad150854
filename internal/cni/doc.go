// Package cni is the CNI plugin's side. The runtime's input becomes a Request and goes to the node's agent over a unix
// socket (HTTP and JSON). The agent's answer becomes the plugin's.
//
// In: a call of the CNI specification 0.4.0, 1.0.0 or 1.1.0. Out: its result or its error, with the specification's
// codes. The plugin decides nothing; everything else is the agent's (internal/node/cniserver).
package cni
