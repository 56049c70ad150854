package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"time"
)

// RouterASN is the number of the autonomous system (RFC 4271) that the BGP router is in; its peers are in any other.
const RouterASN = 64512

// frrDir is where Debian's package frr has its daemons.
const frrDir = "/usr/lib/frr"

// router is FRR on an external host: bgpd, which learns routes, and zebra, which writes them to the host's kernel. All
// its files are in the state folder: one that runs on the machine itself is another.
type router struct {
	endpoint
	layout layout
	ip     netip.Addr // IPv4: the only routes that MetalLB announces without an FRR of its own
}

// theRouter is the one of a sandbox, if it has one.
func theRouter(l layout) (router, bool) {
	hosts := l.hostEndpoints()
	if !l.options.MetalLB || len(hosts) == 0 || !hosts[0].ips[0].Is4() { // IPv4 comes first
		return router{}, false
	}
	return router{hosts[0], l, hosts[0].ips[0]}, true
}

// routerOf is the router that runs on an external host, if one does.
func routerOf(l layout, e endpoint) (router, bool) {
	r, is := theRouter(l)
	return r, is && r.name == e.name
}

// asRouter is the end of a line that tells of an external host.
func asRouter(l layout, e endpoint) string {
	if _, is := routerOf(l, e); is {
		return fmt.Sprintf(", BGP router of AS %d", RouterASN)
	}
	return ""
}

// checkRouter says what a router lacks on this machine.
func checkRouter(l layout) error {
	if _, is := theRouter(l); !is {
		return nil
	}
	if _, err := os.Stat(filepath.Join(frrDir, "bgpd")); err != nil {
		return fmt.Errorf("a BGP router for MetalLB needs FRR: run apt-get install frr: %w", err)
	}
	return nil
}

func (r router) stateDir() string { return r.layout.routerDir() }

func (r router) pidFile(daemon string) string { return filepath.Join(r.stateDir(), daemon+".process") }

func (r router) zebraSocket() string { return filepath.Join(r.stateDir(), "zserv.api") }

// ensureRunning starts what does not run.
func (r router) ensureRunning(ctx context.Context) error {
	for name, content := range map[string]string{"zebra": "", "bgpd": bgpConfig(r.ip, r.layout.primary[0].prefix)} {
		if err := writeFile(filepath.Join(r.stateDir(), name+".conf"), content, 0o644); err != nil {
			return err
		}
	}
	if err := r.giveToFRR(); err != nil {
		return err
	}
	if _, running := runningFrom(r.pidFile("zebra")); !running {
		if err := os.Remove(r.zebraSocket()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := r.startDaemon("zebra"); err != nil {
		return err
	}
	// A bgpd that finds no zebra looks again after ten seconds.
	if err := r.awaitZebra(ctx); err != nil {
		return err
	}
	return r.startDaemon("bgpd")
}

// giveToFRR lets the daemons write to their folder: they run as the user that Debian's package made for them.
func (r router) giveToFRR() error {
	frr, err := user.Lookup("frr")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(frr.Uid)
	if err != nil {
		return err
	}
	return os.Chown(r.stateDir(), uid, -1)
}

func (r router) awaitZebra(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat(r.zebraSocket()); err == nil {
			return nil
		}
		_, running := runningFrom(r.pidFile("zebra"))
		err := sleepUnlessDone(ctx, pollInterval)
		if !running {
			err = errors.New("zebra has ended")
		}
		if err != nil {
			return fmt.Errorf("no %s, see zebra.log beside it: %w", r.zebraSocket(), err)
		}
	}
}

// startDaemon starts a daemon unless it runs.
func (r router) startDaemon(daemon string) error {
	if _, running := runningFrom(r.pidFile(daemon)); running {
		return nil
	}
	args := r.daemonArgs(daemon)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{markerOf(r.layout)}
	p, err := startDaemon(r.netns, cmd, filepath.Join(r.stateDir(), daemon+".log"))
	if err != nil {
		return err
	}
	return writeProcess(r.pidFile(daemon), p)
}

// stopRouter ends the router: no error if none runs.
func (r router) stopRouter() error {
	var all []process
	for _, daemon := range []string{"bgpd", "zebra"} {
		if p, running := runningFrom(r.pidFile(daemon)); running {
			all = append(all, p)
		}
	}
	return killAndWait(all)
}

// daemonArgs are a daemon's command line, with nothing of the machine's and no port but BGP's own.
func (r router) daemonArgs(daemon string) []string {
	file := func(name string) string { return filepath.Join(r.stateDir(), name) }
	return []string{filepath.Join(frrDir, daemon),
		"--config_file", file(daemon + ".conf"), "--pid_file", file(daemon + ".pid"), "--socket", r.zebraSocket(),
		"--vty_socket", r.stateDir(), "--vty_port", "0", "--log", "stdout"}
}

// bgpConfig takes every BGP speaker in network as a peer, and every route that it announces.
func bgpConfig(ip netip.Addr, network netip.Prefix) string {
	return fmt.Sprintf(`router bgp %d
 bgp router-id %s
 bgp log-neighbor-changes
 no bgp ebgp-requires-policy
 neighbor cluster peer-group
 neighbor cluster remote-as external
 bgp listen range %s peer-group cluster
`, RouterASN, ip, network)
}
