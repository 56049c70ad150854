// Package kube brings the objects of the Kubernetes API into a world, and back.
//
// In: API objects, from reflectors that survive the API server's absence. Out: changes of a world.World, in order; and
// the other way round the annotations and statuses that Egret's programs write. Conversions are pure. A part of an
// object that cannot be read becomes a problem of the object, never an error of the program.
package kube
