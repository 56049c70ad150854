// Package ovn keeps a node's own OVN databases equal to its plan: the Northbound, and of the Southbound the chassis of
// other zones.
//
// In: State.NB, State.SetElems and State.SB. Out: the databases hold those rows, and for the Northbound every
// hypervisor of the zone has carried out the change (nb_cfg/hv_cfg, ovn-nb(5) NB_Global), or Confirmed says that it has
// not yet.
//
// # What is ours
//
// A row is ours when its external_ids hold `k8s.ovn.org/owner-controller=egret`; `k8s.ovn.org/id` is then its
// RowID.Name. Three tables have no external_ids, and their rows are told apart by their unique index:
//
//   - Load_Balancer_Group: by name, ours when it starts with `egret-`; the plane puts that in front where it is missing.
//   - Encap (Southbound): by type and ip, ours when its chassis is.
//   - Static_MAC_Binding: by logical_port and ip, ours when that port is.
//
// NB_Global is everybody's: any RowID.Name means the one row of that table. Its wanted columns are set, its wanted map
// keys are merged in one by one, and nothing of it is ever removed.
//
// # Columns
//
// Columns that a row's Cols do not list are left as they are, with three exceptions: external_ids always are the marks
// and what Cols wants besides; a plain `name` is RowID.Name where Cols has none; Address_Set.addresses belongs to
// State.SetElems. In map columns of our rows, keys that are not wanted are removed: ovn-northd 25.03 writes keys of its
// own into NB_Global.options only (Logical_Switch_Port.up, .tag, .dynamic_addresses and Logical_Router_Port.status and
// .ipv6_prefix, which it also writes, are columns of their own: do not list them).
//
// Rows are compared when the plan's journal names them, and all of them after a connection, a failure, a refusal, a
// change by somebody else, and a change of a row that has no external_ids. A row's Cols are compared by identity first:
// a feature makes a new map when a row changes, and never edits one that it has claimed.
//
// Which column of the parent holds a child follows from the schema: it is the one column that refers to the child's
// table. Groups of a row are parents, too: a switch port is written into its Port_Groups together with its switch. Of
// others' groups it stays a member.
package ovn
