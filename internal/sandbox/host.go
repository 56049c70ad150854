package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// ensureHost brings up an external host: a namespace on the fabric with an HTTP server that answers with the client's
// address.
func ensureHost(l layout, e endpoint) error {
	pidFile := filepath.Join(l.hostsDir(), e.name+".pid")
	p, running := runningFrom(pidFile)
	if running && plugged(l, e) {
		return nil
	}
	if running {
		if err := killAndWait([]process{p}); err != nil {
			return err
		}
	}
	if err := replug(l, e); err != nil {
		return err
	}
	if err := InNetns(e.netns, forgetClosed); err != nil {
		return fmt.Errorf("settings of %s: %w", e.name, err)
	}
	cmd := exec.Command(l.options.bin("egret-sandbox"), "serve-clientip")
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

// replug gives an endpoint a fresh namespace and fresh links in place of whatever there is.
func replug(l layout, e endpoint) error {
	if err := unplug(l, e); err != nil {
		return err
	}
	if err := deleteNetns(e.netns); err != nil {
		return err
	}
	return plug(l, e)
}
