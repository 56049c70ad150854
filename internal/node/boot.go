package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// boot gives the host its network, and then the logical network. When the agent first starts after a boot, OVN's
// databases still say what this node held before; its egress IPs may be on other nodes by now. Until they are emptied
// the bridge takes nothing from OVN; the host's own traffic does not depend on that.
type boot struct {
	marker  string // a file that a boot removes
	log     *slog.Logger
	pause   time.Duration // between two tries
	bringUp func(ctx context.Context, closed bool) error
	empty   func(context.Context) error
	// tell tells people of what keeps the node from having pods, with the reason of an Event.
	tell func(ctx context.Context, reason, text string) error
}

// Reasons of Events of a boot.
const (
	reasonNoBridge  = "NoGatewayBridge"
	reasonNoNetwork = "PodsHaveNoNetwork"
)

// brokenNorthbound says what to do while pods have no network.
const brokenNorthbound = "could not forget what was held before the boot: the host has its network, and pods have " +
	"none; trying again. " +
	"See whether the ovsdb-server of OVN_Northbound runs, what its log says, and whether its disk has room; " +
	"a damaged file may be removed, for all that is in it is written anew"

// brokenBridge says what to do while the bridge of the uplink cannot be made, or looked at. The rows that are there
// stay.
const brokenBridge = "could not bring up the gateway bridge: nothing is changed that a former start of the agent has " +
	"set up, and no pod is attached; trying again. See whether ovs-vswitchd and ovsdb-server answer, and whether " +
	"the machine has time for them"

func (b boot) runOnce(ctx context.Context) error {
	_, err := os.Stat(b.marker)
	first := err != nil
	if err := b.bringUpAtLast(ctx, first); err != nil {
		return fmt.Errorf("bring up the gateway bridge: %w", err)
	}
	if !first {
		return nil
	}
	told := false
	for err := b.emptyOnce(ctx); err != nil; err = b.emptyOnce(ctx) {
		b.log.Warn(brokenNorthbound, "error", err)
		told = told || b.postProblem(ctx, reasonNoNetwork, brokenNorthbound, err)
		select {
		case <-time.After(b.pause):
		case <-ctx.Done():
			return fmt.Errorf("forget what was held before the boot: %w", err)
		}
		if err := b.bringUp(ctx, true); err != nil {
			b.log.Warn("could not keep the host's network up; trying again", "error", err)
		}
	}
	return nil
}

// bringUpAtLast has the host's network brought up, however often that fails: to end and be started again takes the host
// longer. Its error is ctx's end.
func (b boot) bringUpAtLast(ctx context.Context, first bool) error {
	told := false
	failed := func(err error) {
		b.log.Warn(brokenBridge, "error", err)
		told = told || b.postProblem(ctx, reasonNoBridge, brokenBridge, err)
	}
	return retryUntilDone(ctx, failed, func(ctx context.Context) error { return b.bringUp(ctx, first) })
}

// tellTimeout bounds how long telling people may keep the host's network from being tried again.
const tellTimeout = 2 * time.Second

// postProblem tells people, and says whether they were told: the API server may be out of reach just then.
func (b boot) postProblem(ctx context.Context, reason, what string, err error) (told bool) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if failed := b.tell(ctx, reason, what+": "+err.Error()); failed != nil {
		b.log.Warn("could not write an Event", "error", failed)
		return false
	}
	return true
}

// emptyOnce empties the logical network, and notes that it has.
func (b boot) emptyOnce(ctx context.Context) error {
	b.log.Info("first start since the boot: the logical network is made anew")
	if err := b.empty(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.marker), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.marker, nil, 0o600)
}

// emptyNetwork empties the logical network; there are no pods to disturb. It returns when ovn-controller has let go of
// what was there.
func emptyNetwork(ctx context.Context, o Options, t *targets, log *slog.Logger) error {
	if err := cni.RemoveConflist(o.CNIConfDir); err != nil {
		return err // the kubelet would say Ready before pods can be attached
	}
	forget := func() error {
		err := t.nb.Grow(ctx, plan.New())
		if plane.OnlyRefusals(err) || plane.OnlyUnconfirmed(err) {
			return nil
		}
		return err
	}
	if err := forget(); err != nil {
		return err
	}
	confirmed := func(context.Context) (bool, error) { return t.nb.Confirmed(), nil }
	if wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, emptied, true, confirmed) != nil {
		log.Warn("ovn-controller has not confirmed that it holds nothing of before the boot: is ovn-northd running, "+
			"and ovn-controller?", "waited", emptied)
	}
	return forget() // again: a connection that has ended meanwhile may have sent a part
}

// emptied is how long ovn-controller may take, which starts at the same time as the agent.
const emptied = 30 * time.Second

// shutIngress takes the flows from s that let in what comes from OVN: the bridges are secure, and what no flow allows
// does not pass.
func shutIngress(s *plan.State) {
	for f := range s.Flows.Rows() {
		if strings.Contains(f.Match, "in_port={"+plan.Patch) {
			delete(s.Flows, f)
		}
	}
}
