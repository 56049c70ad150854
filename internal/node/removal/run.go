package removal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/node"
)

// Options are those of the agent whose work is undone, and the places of further files.
type Options struct {
	node.Options
	CNIBinDir string // /opt/cni/bin: has egret-cni
	OVNState  string // /var/lib/ovn: has OVN's databases
	OVSState  string // the same of Open vSwitch; "": it is the host's own, and stays
	// KeepObjects leaves the Node's annotations, the EgressNode and the Lease.
	KeepObjects bool
}

// ovnRunDir is where OVN's sockets are.
func (o Options) ovnRunDir() string { return filepath.Dir(strings.TrimPrefix(o.Northbound, "unix:")) }

// Run removes Egret from this node. The runtime learns first that there is no network, so that no pod starts. Objects
// of the API come last, when the node has its own way there.
func Run(ctx context.Context, o Options, log *slog.Logger) error {
	if err := checkFolders(o); err != nil {
		return err
	}
	if err := checkStopped(ctx, runners(o)); err != nil {
		return err
	}
	if err := cni.RemoveConflist(o.CNIConfDir); err != nil {
		return err
	}
	h, err := openHost(ctx, o)
	if err != nil {
		return err
	}
	left, err := h.removeNetwork(ctx, log)
	if err != nil {
		return err
	}
	log.Info("the uplink has its addresses and routes", "link", o.Config.UplinkInterface)
	ovsRuns := h.switches != nil || h.vswitchd
	errs := []error{left, removeFiles(o, ovsRuns)}
	if !o.KeepObjects {
		errs = append(errs, removeObjectsOf(ctx, o))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the node has its network back, and this is left: %w", err)
	}
	log.Info("Egret is gone from this node")
	if o.OVSState != "" && ovsRuns {
		log.Info("Open vSwitch runs, and its files stay: stop it, and run this again")
	}
	return nil
}
