package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// bridgeConflist is the plain pod network: a bridge on the node, which is the pods' gateway.
const bridgeConflist = `{
  "cniVersion": "1.0.0",
  "name": "bridge",
  "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": true, "mtu": 1400,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}
  ]
}
`

// write puts a file into a node in place of the one of the name, and makes its folder.
const write = `mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1"`

func bridgeSubnet(i int) string { return fmt.Sprintf("10.244.%d.0/24", i+1) }

// bridge gives the i-th node a bridge as its pod network, routes to the other nodes' pods, and kube-proxy.
func (s *rateSite) bridge(ctx context.Context, i int) error {
	nodes := s.Nodes()
	name := nodes[i].Name
	// In place of the file that the sandbox wrote, for the runtime takes the first.
	conflist := fmt.Sprintf(bridgeConflist, bridgeSubnet(i))
	if _, err := s.ExecIn(ctx, name, "sh", "-c", write, "sh", "/etc/cni/net.d/10-ptp.conflist", conflist); err != nil {
		return err
	}
	for j, n := range nodes {
		if j == i {
			continue
		}
		if _, err := s.ExecIn(ctx, name, "ip", "route", "replace", bridgeSubnet(j), "via", n.IPs[0].String()); err != nil {
			return err
		}
	}
	return s.kubeProxy(ctx, name)
}

// kubeProxy runs kube-proxy on a node, in its nftables mode.
func (s *rateSite) kubeProxy(ctx context.Context, node string) error {
	if _, err := os.Stat(filepath.Join(s.Options().BinDir, "kube-proxy")); err != nil {
		return fmt.Errorf("%w: run make bin/kube-proxy", err)
	}
	config, err := clientcmd.LoadFromFile(s.Kubeconfig())
	if err != nil {
		return err
	}
	for _, c := range config.Clusters {
		c.Server = s.APIURL()
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	const file = "/etc/kube-proxy/kubeconfig"
	if _, err := s.ExecIn(ctx, node, "sh", "-c", write, "sh", file, string(content)); err != nil {
		return err
	}
	// The limits of connection tracking are the machine's, which a node may not set.
	j, err := s.start(node, "sh", "-c", `exec "$@" >/var/log/egret/kube-proxy.log 2>&1`, "sh", "/opt/egret/bin/kube-proxy", "--kubeconfig="+file,
		"--proxy-mode=nftables", "--hostname-override="+node, "--cluster-cidr=10.244.0.0/16", "--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0")
	if err != nil {
		return err
	}
	s.jobs = append(s.jobs, j)
	return nil
}
