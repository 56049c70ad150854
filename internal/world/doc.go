// Package world is the cluster as one node (or the controller) sees it: typed, indexed, and read-only to everyone but
// the loop that owns it.
//
// In: objects, already converted to plain types, through the Set and Del methods. Out: accessors that record what was
// read, and the entries that change, to those who follow (FollowChanges): a compile is redone when, and only when,
// something that it read changes.
package world
