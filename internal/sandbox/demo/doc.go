// Package demo shows EgressIP with real packets in a sandbox.
//
// In: the options of a sandbox and a writer. Out: tables of the source addresses that servers outside saw, each line
// judged right or wrong, and an error if one was wrong. The cluster stays up, and a second run starts from whatever it
// finds.
package demo
