package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig for the certificate prefix.crt and its key. It holds their content, not their
// paths, so that it works from inside a node's root folder too.
func writeKubeconfig(file, user, server, caFile, prefix string) error {
	var pair [3][]byte
	for i, f := range []string{caFile, prefix + ".crt", prefix + ".key"} {
		content, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", user, err)
		}
		pair[i] = content
	}
	const cluster = "egret"
	k := api.NewConfig()
	k.Clusters[cluster] = &api.Cluster{Server: server, CertificateAuthorityData: pair[0]}
	k.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: pair[1], ClientKeyData: pair[2]}
	k.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: user}
	k.CurrentContext = cluster
	content, err := clientcmd.Write(*k)
	if err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	return writeFile(file, content, 0o600)
}
