// Package route holds what a node's kernel must know besides packet filters: addresses, routes, policy routing rules
// and sysctls; and reads the host's links, addresses and routes as facts.
//
// In: State.Addrs, Routes, Rules and Sysctls. Out: the current network namespace has them. Links that have wanted
// addresses are set up, unless these are all deprecated.
//
// What is ours is marked in the kernel: addresses by protocol AddrProtocol (IFA_PROTO, Linux 5.18), those without a
// subnet, as egress IPs are, by metric AddrMetric as well (Linux 4.18), routes and rules by protocol Protocol, in any
// table. What is not marked is never changed: a wanted row that is there unmarked counts as held and stays when it is
// wanted no more; a route of somebody else that stands in a wanted one's way is a refusal. Of other addresses a kernel
// without IFA_PROTO tells nothing: only those that this process added are then removed.
//
// What was read is remembered until the kernel's messages tell of a change by somebody else, so that one route more
// costs no listing, and whatever others delete comes back with the next call. Our own changes of routes are remembered,
// and after one of addresses and rules everything is read again. Sysctls are read at each call, and never undone.
package route
