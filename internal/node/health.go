package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/probe"
)

// Health is where the controllers ask whether this agent lives. Port 0: nowhere.
type Health struct {
	Port int
	TLS  probe.Files
}

// healthRetry is the pause before the service is started again after it failed, as when somebody else has the port.
const healthRetry = 3 * time.Second

// serveHealth answers on the management addresses until ctx is done: those of the pod subnets that the node has,
// whenever they become others. As long as it is said to have none, it answers as before.
func (a *Agent) serveHealth(ctx context.Context, o Health) {
	if o.Port == 0 {
		return
	}
	serving := map[netip.Prefix]context.CancelFunc{}
	var subnets []netip.Prefix
	for {
		others := func() bool { return len(a.Subnets()) > 0 && !slices.Equal(subnets, a.Subnets()) }
		if a.untilTrue(ctx, others) != nil {
			return // all that serves ends with ctx
		}
		subnets = a.Subnets()
		maps.DeleteFunc(serving, func(s netip.Prefix, stop context.CancelFunc) bool {
			gone := !slices.Contains(subnets, s)
			if gone {
				stop()
			}
			return gone
		})
		for _, s := range subnets {
			if serving[s] == nil {
				serving[s] = a.serveAt(ctx, netip.AddrPortFrom(zone.ManagementAddr(s), uint16(o.Port)), o.TLS)
			}
		}
	}
}

// serveAt answers on one address until stop.
func (a *Agent) serveAt(ctx context.Context, address netip.AddrPort, tls probe.Files) (stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	go keepServing(ctx, address, tls, a.log)
	return stop
}

func keepServing(ctx context.Context, address netip.AddrPort, tls probe.Files, log *slog.Logger) {
	for ctx.Err() == nil {
		if err := serveOn(ctx, address, tls, log); err != nil {
			log.Error("controllers cannot ask this agent whether it lives; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(healthRetry):
		}
	}
}

func serveOn(ctx context.Context, address netip.AddrPort, tls probe.Files, log *slog.Logger) error {
	l, err := (&net.ListenConfig{Control: freely}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return fmt.Errorf("health service: %w; free the port, or give another --egressip-node-healthcheck-port to "+
			"agents and controllers", err)
	}
	return probe.Serve(ctx, l, tls, log)
}

// freely lets a socket listen on an address that the host does not have yet: the management port comes with the first
// plan.
func freely(network, _ string, c syscall.RawConn) error {
	level, option := unix.IPPROTO_IP, unix.IP_FREEBIND
	if network == "tcp6" {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_FREEBIND
	}
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, 1) }); e != nil {
		return e
	}
	return err
}
