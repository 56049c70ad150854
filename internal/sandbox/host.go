package sandbox

import (
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
	cmd := exec.Command(l.options.bin("egret-sandbox"), "serve-clientip")
	cmd.Env = []string{markerOf(l)}
	p, err := startDaemon(e.netns, cmd, filepath.Join(l.hostsDir(), e.name+".log"))
	if err != nil {
		return err
	}
	return writeProcess(pidFile, p)
}

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
