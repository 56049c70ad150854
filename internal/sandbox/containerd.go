package sandbox

import (
	"fmt"

	"github.com/egret-net/egret/internal/sandbox/image"
)

// containerdConfig renders containerd's configuration (1.7, version 2 of the file). restrict_oom_score_adj: a machine
// without CAP_SYS_RESOURCE cannot lower oom_score_adj, and containers would not start.
func containerdConfig() string {
	return fmt.Sprintf(`version = 2
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  disable_tcp_service = true
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "%s/certs.d"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = false
`, image.Pause().Name, nodeEtc)
}

// allRegistries points every registry at a loopback port that nobody listens on. The server line matters: without it
// containerd falls back to the registry itself.
const allRegistries = `server = "http://127.0.0.1:1"
[host."http://127.0.0.1:1"]
  capabilities = ["pull", "resolve"]
`

// ptpConflist renders the CNI configuration of the plain pod network for the node with this number, from 1.
func ptpConflist(l layout, number int) (string, error) {
	var ranges, routes string
	for i, r := range l.pods {
		subnet, err := r.nodeSubnet(number)
		if err != nil {
			return "", err
		}
		separator := ", "
		if i == 0 {
			separator = ""
		}
		ranges += fmt.Sprintf(`%s[{"subnet": %q}]`, separator, subnet)
		routes += fmt.Sprintf(`%s{"dst": %q}`, separator, defaultDestination(subnet))
	}
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "ptp",
  "plugins": [
    {"type": "ptp", "ipMasq": true, "mtu": 1400, "ipam": {"type": "host-local", "ranges": [%s], "routes": [%s]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, ranges, routes), nil
}
