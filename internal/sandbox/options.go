package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/egret-net/egret/internal/sandbox/rootfs"
)

// GatewayMode says how pods' traffic leaves a node, as the agent's flag of this name.
type GatewayMode string

// Gateway modes.
const (
	Shared GatewayMode = "shared"
	Local  GatewayMode = "local"
)

// IPFamily says which addresses the cluster has.
type IPFamily string

// Families. In a dual-stack cluster IPv4 comes first.
const (
	IPv4 IPFamily = "ipv4"
	IPv6 IPFamily = "ipv6"
	Dual IPFamily = "dual"
)

// CNI is the pod network.
type CNI string

// Pod networks. PTP is the plain reference for the time a pod takes to start: one veth a pod, no Services, no cluster
// DNS. None leaves nodes NotReady, as other installers do: the user installs a pod network afterwards.
const (
	Egret CNI = "egret"
	PTP   CNI = "ptp"
	None  CNI = "none"
)

const (
	maxNodes     = 90
	maxHosts     = 90
	maxSecondary = 9
)

// Options describe a sandbox. Defaults fills what is left out.
type Options struct {
	Name          string      `json:"name"`
	Nodes         int         `json:"nodes"`
	ExternalHosts int         `json:"externalHosts"`
	GatewayMode   GatewayMode `json:"gatewayMode"`
	IPFamily      IPFamily    `json:"ipFamily"`
	CNI           CNI         `json:"cni"`
	// SecondaryNetworks are fabrics beside the primary one: every node and external host has a link into each (eth1,
	// eth2, ...).
	SecondaryNetworks int `json:"secondaryNetworks"`
	// HealthcheckPort and ReachabilityTimeout, in seconds, are agents' and controllers' flags
	// --egressip-node-healthcheck-port and --egressip-reachability-total-timeout.
	HealthcheckPort     int `json:"healthcheckPort"`
	ReachabilityTimeout int `json:"reachabilityTimeout"`
	// Settings are further lines of the file of agents' and controllers' --config-file.
	Settings string `json:"settings"`
	// MetalLB gives Services of type LoadBalancer their addresses, and the first external host is a BGP router.
	MetalLB bool `json:"metalLB"`
	// no control plane and no kubelets: the caller gives the agents their API server
	NoKubernetes bool `json:"noKubernetes"`

	StateDir string `json:"-"` // of all sandboxes; on a file system that overlayfs takes as upper folder, such as ext4
	CacheDir string `json:"-"` // root folder and images
	BinDir   string `json:"-"` // egret-sandbox, egret-controlplane and the product's binaries
}

// Defaults are the options of `egret-sandbox up` without flags.
func Defaults() Options {
	return Options{
		Name: "egret", Nodes: 3, ExternalHosts: 2, GatewayMode: Shared, IPFamily: IPv4, CNI: Egret,
		ReachabilityTimeout: 1,
		StateDir:            "/var/lib/egret/sandbox", CacheDir: rootfs.CacheDir(), BinDir: binDir(),
	}
}

// binDir is the folder of the running program, which make build fills.
func binDir() string {
	exe, err := os.Executable()
	if err != nil {
		return "bin"
	}
	return filepath.Dir(exe)
}

var namePattern = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case !namePattern.MatchString(o.Name):
		return fmt.Errorf("name %q: want up to 32 lower-case letters, digits and hyphens, first a letter", o.Name)
	case o.Nodes < 1 || o.Nodes > maxNodes:
		return fmt.Errorf("%d nodes: want 1 to %d", o.Nodes, maxNodes)
	case o.ExternalHosts < 0 || o.ExternalHosts > maxHosts:
		return fmt.Errorf("%d external hosts: want 0 to %d", o.ExternalHosts, maxHosts)
	case o.SecondaryNetworks < 0 || o.SecondaryNetworks > maxSecondary:
		return fmt.Errorf("%d secondary networks: want 0 to %d", o.SecondaryNetworks, maxSecondary)
	case o.GatewayMode != Shared && o.GatewayMode != Local:
		return fmt.Errorf("gateway mode %q: want %s or %s", o.GatewayMode, Shared, Local)
	case o.IPFamily != IPv4 && o.IPFamily != IPv6 && o.IPFamily != Dual:
		return fmt.Errorf("IP family %q: want %s, %s or %s", o.IPFamily, IPv4, IPv6, Dual)
	case o.CNI != Egret && o.CNI != PTP && o.CNI != None:
		return fmt.Errorf("pod network %q: want %s, %s or %s", o.CNI, Egret, PTP, None)
	case o.MetalLB && (o.CNI != Egret || o.NoKubernetes):
		return fmt.Errorf("MetalLB needs Kubernetes and pod network %s", Egret)
	case o.HealthcheckPort < 0 || o.HealthcheckPort > 65535:
		return fmt.Errorf("port %d of the health service: want a TCP port, or 0 for port 9", o.HealthcheckPort)
	case o.ReachabilityTimeout < 0:
		return fmt.Errorf("reachability timeout of %d s: want a number of seconds, or 0 for no probes",
			o.ReachabilityTimeout)
	case !filepath.IsAbs(o.StateDir) || !filepath.IsAbs(o.CacheDir) || !filepath.IsAbs(o.BinDir):
		return errors.New("state, cache and binary folder: want absolute paths")
	}
	return nil
}

func (o Options) sandboxDir() string { return filepath.Join(o.StateDir, o.Name) }

func (o Options) binaryPath(name string) string { return filepath.Join(o.BinDir, name) }

func (o Options) rootDir() string { return filepath.Join(o.CacheDir, "root") }

func (o Options) imageDir() string { return filepath.Join(o.CacheDir, "images") }
