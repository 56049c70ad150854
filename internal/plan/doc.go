// Package plan is the desired state of one node as plain, comparable data.
//
// In: rows that features claim (Rows), one owner at a time. Out: State, every owner's rows merged; Diff, the least
// work that turns what a target holds into what it must hold; and a text form that is the same in tests, logs and the
// CLI. Nothing here does I/O, and nothing here knows what an egress IP is.
package plan
