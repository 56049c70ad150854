// Package controller leads: it asks deciders what objects of the API should be, and has that written.
//
// In: changes of the world from package kube, and whether this process leads. Out: what deciders desire, put over the
// world and written through a Writer, and Events. One loop owns the world. Nothing is remembered that a new leader
// would miss: decisions are in the objects.
package controller
