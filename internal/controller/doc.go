// Package controller leads: it asks deciders what objects of the API should be, and has that written.
//
// In: changes of the world from package kube, and whether this process leads. Out: what deciders desire, put over the
// world and written through a Writer, and Events. One loop owns the world. Decisions are in the objects. A new leader
// measures again how late nodes are. It does not know of former assignments that no node has reported.
package controller
