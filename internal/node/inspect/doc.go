// Package inspect lets root on a node ask the agent what it wants of its node, what the node's targets hold, and
// which way a packet takes.
//
// In: requests by HTTP over a unix socket that root alone can open. Out: text, made by whoever implements Agent;
// errors say what to do next.
package inspect
