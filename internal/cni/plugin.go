package cni

import (
	"context"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// Versions are the versions of the specification that the plugin speaks: from the first that has CHECK.
func Versions() version.PluginInfo { return version.PluginSupports("0.4.0", "1.0.0", "1.1.0") }

// Funcs are the plugin's commands for the skeleton of the CNI library.
func Funcs() skel.CNIFuncs {
	return skel.CNIFuncs{Add: forwardCommand(Add), Check: forwardCommand(Check), Del: forwardCommand(Del),
		GC: forwardCommand(GC), Status: forwardCommand(Status)}
}

// forwardCommand forwards one call and prints the result, if there is one, in the version that the configuration asks
// for.
func forwardCommand(name string) func(*skel.CmdArgs) error {
	return func(a *skel.CmdArgs) error {
		config, err := ParseConfig(a.StdinData)
		if err != nil {
			return err
		}
		request, err := NewRequest(name, a, config)
		if err != nil {
			return err
		}
		if err := request.Validate(); err != nil {
			return err
		}
		result, err := Call(context.Background(), config.Socket, request)
		if err != nil || result == nil {
			return err
		}
		return types.PrintResult(result, config.CNIVersion)
	}
}
