// Package simulate runs the whole protocol of controllers, agents and holders in one thread and in virtual time: the
// real deciders, features, machines, mailboxes and outbox over a model of the API server, of the nodes' targets and of
// what can go wrong. One seed and one story are one run.
//
// In: a story, which is text, a line an event. Out: what packets did that they must not, with the time and the claims
// that would have been right.
package simulate
