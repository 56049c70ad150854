// Package explain says which way a packet of a pod takes, which objects decide about its source, and why others do not.
//
// In: a world, a pod and a packet. Out: the ends that the tracer finds, or text for people. The world may be that of a
// node's agent, whose own plan is then taken as it is. Or it is made of the API's objects alone, as an administrator
// can read them. It then lacks what only an agent knows: its tunnels, addresses that another machine answers for, pods
// that wait for their first holder.
package explain
