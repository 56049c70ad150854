// egret-cni is the CNI plugin that the container runtime calls; it forwards each call to the node's agent.
package main

import (
	"os"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/version"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		version.PrintLine(os.Stdout, "egret-cni")
		return
	}
	skel.PluginMainFuncs(cni.Funcs(), cni.Versions(),
		"CNI plugin egret-cni "+version.OfProgram()+": pods' network interfaces by Egret's agent on this node")
}
