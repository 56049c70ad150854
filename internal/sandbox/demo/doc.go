// Package demo shows EgressIPs with real packets in a sandbox, one of them for a namespace with its own network.
//
// In: the options of a sandbox and a writer. Out: the commands that a user would give, what they print, and tables of
// the source addresses that servers saw. Each line is judged right or wrong; one wrong line is an error. The cluster
// stays up, and a second run starts from whatever it finds.
package demo
