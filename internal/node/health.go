package node

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/feature/zone"
)

// healthRetry is the pause before the service is started again after it failed, as when somebody else has the port.
const healthRetry = 3 * time.Second

// serveSubnets has serve answer on a port of the management addresses until ctx is done: those of the pod subnets that
// the node has, whenever they become others. As long as it is said to have none, it answers as before. Where serve
// fails, failed is told, and it is tried again.
func (p *podNetwork) serveSubnets(ctx context.Context, port int, serve func(context.Context, net.Listener) error,
	failed func(error)) {
	if port == 0 {
		return
	}
	serving := map[netip.Prefix]context.CancelFunc{}
	var subnets []netip.Prefix
	for {
		others := func() bool { return len(p.Subnets()) > 0 && !slices.Equal(subnets, p.Subnets()) }
		if p.untilTrue(ctx, others) != nil {
			return // all that serves ends with ctx
		}
		subnets = p.Subnets()
		maps.DeleteFunc(serving, func(s netip.Prefix, stop context.CancelFunc) bool {
			gone := !slices.Contains(subnets, s)
			if gone {
				stop()
			}
			return gone
		})
		for _, s := range subnets {
			if serving[s] == nil {
				at := netip.AddrPortFrom(zone.ManagementAddr(s), uint16(port))
				one, stop := context.WithCancel(ctx)
				serving[s] = stop
				go keepServing(one, at, serve, failed)
			}
		}
	}
}

func keepServing(ctx context.Context, address netip.AddrPort, serve func(context.Context, net.Listener) error,
	failed func(error)) {
	for ctx.Err() == nil {
		if err := serveOn(ctx, address, serve); err != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(healthRetry):
		}
	}
}

func serveOn(ctx context.Context, address netip.AddrPort, serve func(context.Context, net.Listener) error) error {
	l, err := (&net.ListenConfig{Control: setFreeBind}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return fmt.Errorf("%w; free the port, or give another by the flag", err)
	}
	return serve(ctx, l)
}

// setFreeBind lets a socket listen on an address that the host does not have yet: the management port comes with the
// first plan.
func setFreeBind(network, _ string, c syscall.RawConn) error {
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
