// Package flow is the plane of OpenFlow flows on the node's own bridges.
//
// In: State.Flows, whose matches and actions name ports in braces. Out: the bridges hold them, in one atomic bundle a
// bridge (`ovs-ofctl --bundle`), so that a packet meets the old flows or the new ones and never a part of either. Where
// all flows are written, those of tables that had none go ahead, in a bundle of their own, and the datapath is waited
// for (bridge.go says why).
//
// Ownership is the flow's cookie: its low 32 bits are Mark, its high 32 bits a generation. At a start, after a failure,
// when a port has another number, and when told to Forget, all wanted flows are written under a new generation, and
// Shrink deletes the former generations by cookie. Flows that end by themselves are left to Renew then: a round that
// writes all must not bring back what has ended. An addition whose match and priority are there already takes the
// cookie over and keeps the counters (OpenFlow 1.4 without RESET_COUNTS). From then on what changed in the plan is
// added to that generation, and deleted from it by cookie, match and priority. So nothing ever has to be compared with
// the switch's own spelling of a flow, and no foreign flow is read, written or raced with (`replace-flows` would need
// all of them). A new process adopts the flows that the previous one left. Two flows of a plan must not be one to the
// switch by two spellings of a match.
//
// Flows of ours that somebody else deletes are noticed by their number (lost.go).
//
// An ovs-ofctl that is started ahead waits for the next change of each bridge (spares.go): starting it takes longer
// than all that the switch does then.
package flow
