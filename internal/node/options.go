package node

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// Options are an agent's settings; paths are OVS' and OVN's usual ones in a node's root.
type Options struct {
	Node, Kubeconfig, BootID, Version string
	APIServer                         string // host:port; "": as the kubeconfig says
	Config                            world.Config
	OVSRunDir                         string // /run/openvswitch
	Northbound, Southbound            string // unix:/run/ovn/ovnnb_db.sock and ovnsb_db.sock
	CNISocket                         string // /run/egret/cni.sock
	CNIConfDir                        string // /etc/cni/net.d
	AgentSocket                       string // /run/egret/agent.sock: egret-node plan and trace ask there
	BootMarker                        string // /run/egret/booted: a file that a boot removes
	HostRoot                          string // /: where the host's /etc and /usr are
	Health                            Health
	Lease                             time.Duration // for how long a renewal of the agent's Lease lasts; 0: it has none
	Metrics                           metrics.Options
	Healthz                           string // host:port of /healthz and /readyz alone; empty: nowhere
}

// FormerSysctls is the file with the values that settings of the kernel had before this boot's agents changed them.
func (o Options) FormerSysctls() string {
	return filepath.Join(filepath.Dir(o.BootMarker), "former-sysctls.conf")
}

// Health is where the controllers ask whether this agent lives. Port 0: nowhere.
type Health struct {
	Port int
	TLS  probe.Files
}

// CheckLease refuses a duration of the agent's Lease that makes no sense.
func CheckLease(lasts time.Duration) error {
	if lasts != 0 && lasts != probe.Lasting(lasts) {
		return fmt.Errorf("--agent-lease-duration %d: give %d to %d seconds, or 0 for no Lease", lasts/time.Second,
			probe.ShortestLease/time.Second, probe.LongestLease/time.Second)
	}
	return nil
}
