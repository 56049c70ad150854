// Package networks holds what users ask for as networks of their pods, and computes the networks of a world from it.
//
// In: requests and definitions, as package kube reads them, and decisions about them. Out: tables of them in a world,
// and the world's networks, which follow from the numbered definitions alone.
package networks
