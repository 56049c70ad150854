// Command conformance runs the Kubernetes end-to-end suite of sig-network against a sandbox: make test-conformance runs
// it.
//
// In: a built bin/ with e2e.test and ginkgo, of the sandbox's version, and a machine that can run a sandbox. Out: on
// stdout, one line a spec: whether it passed and, if not, why, or why it cannot run here; in the folder of -out, the
// suite's whole output. The code is 1 if a spec failed.
//
// The suite runs in the network of an external host, as a client from another network would, and a load balancer of
// three dozen lines stands in for a cloud's (balancer.go). No registry is asked: the images that the suite names are
// given to images of the sandbox (images.go).
package main
