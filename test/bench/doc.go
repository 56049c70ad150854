// Command bench measures what the project promises about speed and memory: make bench runs it.
//
// In: a built bin/ and a machine that can run a sandbox. Out: on stdout, one line a figure: name, median, unit, the
// floor (`ovn-nbctl --wait=hv sync` on the node in question in the same run) and the ratio to it, the goal, and how the
// runs spread; on stderr, what is being done. docs/benchmarks.md explains the figures.
package main
