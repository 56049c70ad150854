// Package health answers load balancers that ask whether this node serves a Service, or takes connections at all.
//
// In: State.HealthChecks, by port. Out: an HTTP server at each of these ports, on all addresses of the host, that
// answers as kube-proxy does (Service.spec.healthCheckNodePort): 200 where the Service has ready endpoints on this
// node, else 503. For the node it answers as kube-proxy's /healthz: 200, or 503 where the node is about to go. A port
// that somebody else has is refused, and tried again with each round.
package health
