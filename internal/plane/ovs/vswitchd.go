package ovs

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovs/unixctl"
)

const (
	redialEvery = 10 * time.Millisecond
	// bridgesWithin is how long a new ovs-vswitchd may take to make its bridges before its return is told anyway.
	bridgesWithin = 5 * time.Second
)

// VSwitchdRestarts gets a value whenever ovs-vswitchd went away and is back with its bridges: all flows and connections
// are gone then. It holds a connection to the daemon's control socket, so the end is known at once. The channel is
// closed with ctx.
func VSwitchdRestarts(ctx context.Context, runDir string, log *slog.Logger) <-chan struct{} {
	restarts := make(chan struct{}, 1)
	go func() {
		defer close(restarts)
		conn := dialVSwitchd(ctx, runDir)
		for conn != nil {
			_ = conn.WaitClosed(ctx) // however it ended, ctx says whether to go on
			conn.Close()
			if ctx.Err() != nil {
				return
			}
			log.Warn("ovs-vswitchd is gone")
			if conn = dialVSwitchd(ctx, runDir); conn == nil {
				return
			}
			log.Info("ovs-vswitchd is back")
			plane.SignalOnce(restarts)
		}
	}()
	return restarts
}

// dialVSwitchd tries until the daemon answers and has bridges; nil when ctx is done.
func dialVSwitchd(ctx context.Context, runDir string) *unixctl.Conn {
	tick := time.NewTicker(redialEvery)
	defer tick.Stop()
	for {
		if conn, err := unixctl.Dial(ctx, runDir, "ovs-vswitchd"); err == nil {
			if awaitBridges(ctx, conn, tick) {
				return conn
			}
			conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// awaitBridges is false when the daemon ends meanwhile. Its control socket is there before it has read the database,
// and before its bridges can take flows.
func awaitBridges(ctx context.Context, conn *unixctl.Conn, tick *time.Ticker) bool {
	for end := time.Now().Add(bridgesWithin); time.Now().Before(end); {
		list, err := conn.Call(ctx, "ofproto/list")
		if err != nil {
			return false
		}
		if strings.TrimSpace(list) != "" {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
