// Package host finds out what this machine is: its links, addresses, routes and rules, and what keeps egress IPs away
// from its links.
//
// In: the host as internal/plane/route reads it, and the settings. Out: a world.Host, annotations of the Node, faults
// of networks. The gateway bridge follows its uplink.
package host
