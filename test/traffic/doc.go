// Package traffic makes and sees what tests and benchmarks are about: datagrams of pods on their way to hosts outside.
//
// In: a sandbox. Out: on its nodes' disks a program that sends (Install; sender is its source), on hosts outside
// sockets that take what it sends (Swallow), and a capture of what passes the primary and secondary networks (Listen):
// each datagram with its source, and the pod and number that its payload names. Lost and Wrong judge what was seen.
package traffic
