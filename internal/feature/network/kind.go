package network

import (
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

// DescribeKind describes networks of users.
func DescribeKind() feature.Kind {
	return feature.Kind{
		Resources:   []kube.Kind{kube.UserNetworks(), kube.ClusterNetworks(), kube.NetworkDefinitions()},
		Table:       networks.KeepTables,
		NewDeciders: func(*handover.Pods) []decide.Decider { return []decide.Decider{NewDecider(), NewPortChecker()} },
		Reads: []feature.Read{{Resource: kube.NetworkDefinitions(), InNamespace: true,
			If: func(w *world.World, namespace string) bool { return w.PrimaryNetwork(namespace) == "" }}},
		Refuse: Refuse,
	}
}
