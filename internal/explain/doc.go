// Package explain says which way a packet of a pod takes, which objects decide about its source, and why others do not.
//
// In: a world, a pod and a packet. Out: the ends that the tracer finds, or text for people. The world may be a node's
// agent's, whose own plan is then taken as it is, or one of the API's objects alone, as who administers a cluster can
// read it: what an agent knows beyond these (its tunnels, addresses that another machine answers for, pods that wait
// for their first holder) is not in that.
package explain
