package nodeinit

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Run boots the node and then never returns, but for an error on the way. It must be the first process of its pid
// namespace and alone in its mount, uts and network namespaces.
func Run(s Spec, log *slog.Logger) error {
	if os.Getpid() != 1 {
		return errors.New("not the first process of a pid namespace: a node's init is started by egret-sandbox up")
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	if err := enterRoot(s); err != nil {
		return fmt.Errorf("root folder: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := prepareNode(s); err != nil {
		return err
	}
	r := newReaper()
	go r.reapForever(children)
	c := control{units: newUnits(s, r, log)}
	if err := c.listenOnSocket(); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	for _, u := range c.units {
		u.startKeeping()
	}
	log.Info("node started", "node", s.Hostname, "units", len(c.units))
	select {}
}

func prepareNode(s Spec) error {
	for _, dir := range append([]string{logDir}, s.Dirs...) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, setting := range s.Sysctls {
		if err := setting.writeSetting(); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("kernel setting: %w", err)
		}
	}
	return nil
}

func newUnits(s Spec, r *reaper, log *slog.Logger) []*supervised {
	var units []*supervised
	for _, u := range s.Units {
		status := Status{Name: u.Name, State: Waiting}
		units = append(units, &supervised{unit: u, env: s.Env, logs: logDir, reaper: r, log: log, status: status})
	}
	return units
}
