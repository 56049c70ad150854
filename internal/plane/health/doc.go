// Package health answers load balancers that ask whether this node serves a Service.
//
// In: State.HealthChecks, by port. Out: an HTTP server at each of these ports, on all addresses of the host, that says
// what kube-proxy says (Service.spec.healthCheckNodePort): 200 where the Service has ready endpoints on this node, 503
// where it has none. A port that somebody else has is refused, and tried again with each round.
package health
