package harness

import (
	"k8s.io/client-go/kubernetes"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
)

// Cluster is a sandbox with clients of its API that have no limit of requests.
type Cluster struct {
	*sandbox.Cluster
	Core  *kubernetes.Clientset
	Egret *kube.Clients
}

// Connect makes the clients; agent is what they call themselves.
func Connect(s *sandbox.Cluster, agent string) (*Cluster, error) {
	config, err := kube.Config(s.Kubeconfig(), "", -1, agent)
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	egret, err := kube.NewClients(config)
	return &Cluster{Cluster: s, Core: core, Egret: egret}, err
}
