// egret-cni is the CNI plugin that the container runtime calls; it forwards each call to the node's agent.
package main

import (
	"github.com/containernetworking/cni/pkg/skel"

	"github.com/egret-net/egret/internal/cni"
)

func main() {
	skel.PluginMainFuncs(cni.Funcs(), cni.Versions(),
		"egret-cni: pods' network interfaces by Egret's agent on this node")
}
