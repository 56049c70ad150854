package sandbox

import (
	"fmt"
	"net/netip"
	"strings"
)

// StaticPods is the folder of a node from which its kubelet runs pods of its own, where kubeadm has it.
const StaticPods = "/etc/kubernetes/manifests"

// kubeletConfig renders the kubelet's configuration file. The times are those that the control plane's 8 s until
// NotReady asks for. Nothing is evicted or collected: the disk is the machine's.
func kubeletConfig(cgroup string, dns []netip.Addr) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]s/ca.crt}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
oomScoreAdj: 0
makeIPTablesUtilChains: false
clusterDomain: cluster.local
clusterDNS: [%[3]s]
resolvConf: /etc/resolv.conf
staticPodPath: %[4]s
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
syncFrequency: 10s
shutdownGracePeriod: 0s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "50Mi", nodefs.available: "100Mi", nodefs.inodesFree: "0%%", imagefs.available: "100Mi"}
`, nodeEtc, cgroup, quoteAddresses(dns), StaticPods)
}

// quoteAddresses joins addresses as a YAML flow list's items; an IPv6 address needs its quotes.
func quoteAddresses(ips []netip.Addr) string {
	var items []string
	for _, ip := range ips {
		items = append(items, fmt.Sprintf("%q", ip))
	}
	return strings.Join(items, ", ")
}

func joinTexts[T fmt.Stringer](items []T) string {
	var texts []string
	for _, i := range items {
		texts = append(texts, i.String())
	}
	return strings.Join(texts, ",")
}
