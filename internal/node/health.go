package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
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

// serveHealth answers on the management addresses until ctx is done. They are known once the node has its pod subnets.
func (a *Agent) serveHealth(ctx context.Context, o Health) {
	if o.Port == 0 || a.untilTrue(ctx, func() bool { return len(a.Subnets()) > 0 }) != nil {
		return
	}
	for _, subnet := range a.Subnets() {
		address := netip.AddrPortFrom(zone.ManagementAddr(subnet), uint16(o.Port))
		go keepServing(ctx, address, o.TLS, a.log)
	}
}

func keepServing(ctx context.Context, address netip.AddrPort, tls probe.Files, log *slog.Logger) {
	for ctx.Err() == nil {
		if err := serveOn(ctx, address, tls); err != nil {
			log.Error("controllers cannot ask this agent whether it lives; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(healthRetry):
		}
	}
}

func serveOn(ctx context.Context, address netip.AddrPort, tls probe.Files) error {
	l, err := (&net.ListenConfig{Control: freely}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return fmt.Errorf("health service: %w; free the port, or give another --egressip-node-healthcheck-port to agents and controllers", err)
	}
	return probe.Serve(ctx, l, tls)
}

// freely lets a socket listen on an address that the host does not have yet: the management port comes with the first plan.
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
