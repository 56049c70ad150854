package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// ensureHost brings up an external host: a namespace on the fabric with an HTTP server that answers with the client's
// address, and the router if it is one.
func ensureHost(ctx context.Context, l layout, e endpoint) error {
	pidFile := filepath.Join(l.hostsDir(), e.name+".pid")
	r, isRouter := routerOf(l, e)
	if p, running := runningFrom(pidFile); !running || !isPlugged(l, e) {
		if running {
			if err := killAndWait([]process{p}); err != nil {
				return err
			}
		}
		if isRouter {
			if err := r.stopRouter(); err != nil {
				return err
			}
		}
		if err := startHost(l, e, pidFile); err != nil {
			return err
		}
	}
	if !isRouter {
		return nil
	}
	return r.ensureRunning(ctx)
}

func startHost(l layout, e endpoint, pidFile string) error {
	if err := replugEndpoint(l, e); err != nil {
		return err
	}
	if err := InNetns(e.netns, forgetClosed); err != nil {
		return fmt.Errorf("settings of %s: %w", e.name, err)
	}
	cmd := exec.Command(l.options.binaryPath("egret-sandbox"), "serve-clientip")
	cmd.Env = []string{markerOf(l)}
	p, err := startDaemon(e.netns, cmd, filepath.Join(l.hostsDir(), e.name+".log"))
	if err != nil {
		return err
	}
	return writeProcess(pidFile, p)
}

// forgetClosed keeps no connection in TIME-WAIT. When an egress IP moves, its new holder does not know which ports the
// former one has just used. A server that still remembers such a connection answers a new one from the same port with
// an ACK of the old (RFC 9293 3.10.7.4), the client with RST and a second SYN: Linux gets over that, the connection
// tracking of OVS 3.5's userspace datapath does not, and the connection fails. Tests open as many connections to one
// host in seconds as real machines do in hours.
func forgetClosed() error { return writeSysctl("net/ipv4/tcp_max_tw_buckets", "0") }

// replugEndpoint gives an endpoint a fresh namespace and fresh links in place of whatever there is.
func replugEndpoint(l layout, e endpoint) error {
	if err := unplugEndpoint(l, e); err != nil {
		return err
	}
	if err := deleteNetns(e.netns); err != nil {
		return err
	}
	return plugEndpoint(l, e)
}
