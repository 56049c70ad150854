// Package manifests tests deploy/ and deploy/cluster as somebody installs them: on a sandbox whose nodes run a kubelet
// and a container runtime, and nothing of Egret.
//
// In: the product's image, from make image, and the other binaries of make build. Out: whether the cluster becomes
// Ready and pods' packets leave with the right source. It is make test-manifests.
package manifests
