// Package image makes the container images of a sandbox, and the product's own, without any registry.
//
// In: statically linked binaries (pause, agnhost, coredns, MetalLB's; Egret's programs) and the Debian root folder,
// from which tools and their shared libraries are taken. Out: one `docker save` tar per image, byte for byte the
// same for the same input, to be imported with `ctr --namespace k8s.io images import FILE`.
package image
