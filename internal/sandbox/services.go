package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/sandbox/image"
	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

// Paths inside a node.
const (
	nodeEtc    = "/etc/egret" // written by the sandbox from outside, also while the node runs
	nodeBin    = "/opt/egret/bin"
	nodeImages = "/opt/egret/images"
	ovsSocket  = "/run/openvswitch/db.sock"
	nbSocket   = "/run/ovn/ovnnb_db.sock"
	sbSocket   = "/run/ovn/ovnsb_db.sock"
)

// Ports of /metrics and /healthz on a node: OVN-Kubernetes' own, of ovnkube-master and ovnkube-node.
const (
	ControllerMetricsPort = 9409
	AgentMetricsPort      = 9410
)

// NodeHealthPort is where load balancers ask whether a node takes connections: kube-proxy's.
const NodeHealthPort = 10256

// ControllerNodes is on how many nodes, the first ones, controllers run: one leads, the other stands by.
const ControllerNodes = 2

// nodeUnits lists what runs on the node with this number, from 1. have says whether a program of the product has been
// built: a missing one is left out.
func nodeUnits(l layout, e endpoint, number int, datapath string, images []string,
	have func(string) bool) []nodeinit.Unit {
	units := []nodeinit.Unit{containerdUnit()}
	if !l.options.NoKubernetes {
		units = append(units, kubeletUnit(e))
	}
	for _, file := range images {
		units = append(units, importUnit(file))
	}
	if l.options.CNI != Egret {
		return units
	}
	units = append(units, ovsUnits(e, datapath)...)
	units = append(units, ovnUnits()...)
	if have("egret-node") {
		units = append(units, agentUnit(l, e, datapath))
	}
	if have("egret-controller") && number <= ControllerNodes {
		units = append(units, controllerUnit(l, e))
	}
	return units
}

func containerdUnit() nodeinit.Unit {
	return nodeinit.Unit{Name: "containerd",
		Args: []string{"/usr/bin/containerd", "--config", nodeEtc + "/containerd.toml"}}
}

func kubeletUnit(e endpoint) nodeinit.Unit {
	return nodeinit.Unit{
		Name: "kubelet",
		Args: []string{nodeBin + "/egret-controlplane", "kubelet",
			"--config=" + nodeEtc + "/kubelet.yaml",
			"--kubeconfig=" + nodeEtc + "/kubelet.kubeconfig",
			"--cert-dir=/var/lib/kubelet/pki",
			"--hostname-override=" + e.name,
			"--node-ip=" + joinTexts(e.ips),
			"--v=1",
		},
		Needs: []string{nodeEtc + "/kubelet.kubeconfig", "/run/containerd/containerd.sock"},
	}
}

// importUnit loads one image file into containerd. The mark of what was done is on the node's disk beside the images,
// named after the file's size and time, so that a rebuilt image is loaded again.
func importUnit(file string) nodeinit.Unit {
	name := strings.TrimSuffix(filepath.Base(file), ".tar")
	version := ""
	if info, err := os.Stat(file); err == nil {
		version = fmt.Sprintf("-%d-%d", info.Size(), info.ModTime().UnixNano())
	}
	return nodeinit.Unit{
		Name: "import-" + name,
		Args: []string{"/usr/bin/ctr", "--namespace", "k8s.io", "images", "import", nodeImages + "/" +
			filepath.Base(file)},
		Needs:   []string{"/run/containerd/containerd.sock"},
		OneShot: true,
		Unless:  "/var/lib/containerd/egret-imported/" + name + version,
	}
}

// ovsNice is the priority that OVS' own start script gives its programs: a BFD session must not go down for what a
// node's boot, or the end of many pods, starts.
const ovsNice = -10

// ovsUnits are the switch and its database. The settings in it are those that ovn-controller must find when it first
// looks: it makes br-int at once, with the kernel's datapath if not told otherwise. All others are the agent's.
func ovsUnits(e endpoint, datapath string) []nodeinit.Unit {
	conf := databaseUnit("ovsdb-server", "/etc/openvswitch/conf.db", "/usr/share/openvswitch/vswitch.ovsschema",
		ovsSocket, "--unixctl=/run/openvswitch/ovsdb-server.ctl", "--pidfile=/run/openvswitch/ovsdb-server.pid",
		"--remote=db:Open_vSwitch,Open_vSwitch,manager_options")
	conf.Nice = ovsNice
	vswitchd := nodeinit.Unit{
		Name: "ovs-vswitchd",
		Args: []string{"/usr/sbin/ovs-vswitchd", "unix:" + ovsSocket,
			"--pidfile=/run/openvswitch/ovs-vswitchd.pid"},
		Nice:  ovsNice,
		Needs: []string{ovsSocket},
		Before: []nodeinit.Step{{Args: []string{"/usr/bin/ovs-vsctl", "--no-wait", "--timeout=5", "init", "--",
			"set", "Open_vSwitch", ".", "external_ids:system-id=" + e.name, "external_ids:hostname=" + e.name,
			"external_ids:ovn-bridge-datapath-type=" + datapath}}},
	}
	return []nodeinit.Unit{conf, vswitchd}
}

// ovnUnits are the node's own zone: two databases, and the daemons between them and the switch.
func ovnUnits() []nodeinit.Unit {
	return []nodeinit.Unit{
		databaseUnit("ovsdb-nb", "/var/lib/ovn/ovnnb_db.db", "/usr/share/ovn/ovn-nb.ovsschema", nbSocket,
			"--unixctl=/run/ovn/ovnnb_db.ctl", "--pidfile=/run/ovn/ovnnb_db.pid"),
		databaseUnit("ovsdb-sb", "/var/lib/ovn/ovnsb_db.db", "/usr/share/ovn/ovn-sb.ovsschema", sbSocket,
			"--unixctl=/run/ovn/ovnsb_db.ctl", "--pidfile=/run/ovn/ovnsb_db.pid"),
		{
			Name: "ovn-northd",
			Args: []string{"/usr/bin/ovn-northd", "--ovnnb-db=unix:" + nbSocket, "--ovnsb-db=unix:" + sbSocket,
				"--pidfile=/run/ovn/ovn-northd.pid"},
			Needs: []string{nbSocket, sbSocket},
		},
		{
			Name:  "ovn-controller",
			Args:  []string{"/usr/bin/ovn-controller", "unix:" + ovsSocket, "--pidfile=/run/ovn/ovn-controller.pid"},
			Needs: []string{ovsSocket, sbSocket},
		},
	}
}

// databaseUnit is an ovsdb-server whose file is created at the node's first start.
func databaseUnit(name, file, schema, socket string, more ...string) nodeinit.Unit {
	return nodeinit.Unit{
		Name:   name,
		Args:   append([]string{"/usr/sbin/ovsdb-server", file, "--remote=punix:" + socket}, more...),
		Before: []nodeinit.Step{{Args: []string{"/usr/bin/ovsdb-tool", "create", file, schema}, Unless: file}},
	}
}

func agentUnit(l layout, e endpoint, datapath string) nodeinit.Unit {
	return nodeinit.Unit{
		Name: "egret-node",
		Args: append([]string{nodeBin + "/egret-node",
			"--node-name", e.name,
			"--kubeconfig", nodeEtc + "/node.kubeconfig",
			"--gateway-mode", string(l.options.GatewayMode),
			"--gateway-interface", uplink,
			"--datapath", datapath,
			"--metrics-bind-address", ":" + strconv.Itoa(AgentMetricsPort),
			"--node-health-port", strconv.Itoa(NodeHealthPort),
		}, commonFlags(l)...),
		// It does not wait for OVN's databases, nor does the pod of deploy/cluster: it gives the host its network
		// first.
		Needs: []string{nodeEtc + "/node.kubeconfig", ovsSocket},
	}
}

func controllerUnit(l layout, e endpoint) nodeinit.Unit {
	return nodeinit.Unit{
		Name: "egret-controller",
		Args: append([]string{nodeBin + "/egret-controller",
			"--node-name", e.name,
			"--kubeconfig", nodeEtc + "/controller.kubeconfig",
			"--metrics-bind-address", ":" + strconv.Itoa(ControllerMetricsPort),
		}, commonFlags(l)...),
		Needs: []string{nodeEtc + "/controller.kubeconfig"},
	}
}

// commonFlags are those of agents and controllers.
func commonFlags(l layout) []string {
	return []string{"--cluster-subnets", joinTexts(l.pods), "--service-subnets", joinTexts(l.service), "--config-file",
		nodeEtc + "/" + configFile}
}

// configFile is OVN-Kubernetes' kind of file, in nodeEtc.
const configFile = "egret.conf"

func egretConfig(o Options) string {
	return fmt.Sprintf(
		"[ovnkubernetesfeature]\negressip-node-healthcheck-port=%d\negressip-reachability-total-timeout=%d\n",
		o.HealthcheckPort, o.ReachabilityTimeout) + o.Settings
}

// imageFiles are the images that are loaded on every node.
func imageFiles(o Options) []string {
	var files []string
	for _, ref := range image.All() {
		if runsImage(o, ref) {
			files = append(files, filepath.Join(o.imageDir(), ref.File))
		}
	}
	return files
}

func runsImage(o Options, ref image.Ref) bool {
	switch ref {
	case image.Pause():
		return true
	case image.CoreDNS():
		return o.CNI == Egret && !o.NoKubernetes
	case image.MetalLBController(), image.MetalLBSpeaker():
		return o.MetalLB
	default:
		return !o.NoKubernetes
	}
}
