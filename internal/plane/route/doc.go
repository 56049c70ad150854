// Package route holds what a node's kernel must know besides packet filters: addresses, routes, policy routing rules
// and sysctls; and reads the host's links, addresses and routes as facts.
//
// In: State.Addrs, Routes, Rules and Sysctls. Out: the current network namespace has them. Links that have wanted
// addresses are set up, unless these are all deprecated.
//
// Our rows are marked in the kernel. Addresses have protocol AddrProtocol (IFA_PROTO, Linux 5.18), and those without a
// subnet, as egress IPs, have metric AddrMetric as well (Linux 4.18). Routes and rules have protocol Protocol, in any
// table. Rows without a mark are never changed. A wanted row that is there unmarked counts as held, and stays when it
// is no longer wanted. A foreign route that stands in a wanted one's way is a refusal. Of other addresses a kernel
// without IFA_PROTO tells nothing: only those that this process added are then removed.
//
// The kernel makes the routes to an address and to its subnet once, when the address is added. Where somebody deletes
// them (ip route flush dev), a wanted address is removed and added again, marked or not: nobody reaches it as it is.
//
// The plane remembers what it read until the kernel's messages tell of a change by somebody else. So one route more
// costs no listing, and rows that others delete come back with the next call. Our own changes of routes are remembered,
// and after one of addresses and rules everything is read again. Sysctls are read at each call, and never undone.
package route
