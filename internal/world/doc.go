// Package world is the cluster as one node (or the controller) sees it: typed, indexed, and read-only to everyone but
// the loop that owns it.
//
// In: objects, already converted to plain types, through the Set and Del methods; each returns what it touched. Out:
// accessors that record what was read, so that a compile is redone when, and only when, something it read was touched.
package world
