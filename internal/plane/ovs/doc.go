// Package ovs is the plane of the local Open vSwitch database: bridges, ports, pods' attachments, settings.
//
// In: State.OVSIDs and State.Ports, calls of the CNI server for pods' ports, and the bring-up of the gateway bridge.
// Out: rows of the Open_vSwitch database, and what others need to know of it: OpenFlow port numbers, conntrack zones,
// restarts of ovs-vswitchd.
//
// Nothing is remembered outside the database. Rows of ours are marked in Interface.external_ids: `egret=plan` for a
// port of the plan, `egret=pod` for a pod's. In a map that others write too, the key `egret-keys` lists the keys of
// ours.
package ovs
