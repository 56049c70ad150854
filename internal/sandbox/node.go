package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

// node is one node of a sandbox, from outside.
type node struct {
	endpoint
	layout   layout
	number   int // from 1
	datapath string
}

func (n node) stateDir() string { return n.layout.nodeDir(n.name) }

// etcDir is the node's /etc/egret.
func (n node) etcDir() string { return filepath.Join(n.stateDir(), "etc") }

// logDir is the node's /var/log.
func (n node) logDir() string { return filepath.Join(n.stateDir(), "log") }

func (n node) diskDir() string { return filepath.Join(n.stateDir(), "disk") }

func (n node) pidFile() string { return filepath.Join(n.stateDir(), "init.pid") }

func (n node) specFile() string { return filepath.Join(n.stateDir(), "init.json") }

// init is the node's first process.
func (n node) init() (process, error) {
	p, ok := runningFrom(n.pidFile())
	if !ok {
		return process{}, fmt.Errorf("node %s is off: turn it on with egret-sandbox power-on", n.name)
	}
	return p, nil
}

// isOn says whether the node runs and is connected.
func (n node) isOn() bool {
	_, err := n.init()
	return err == nil && isPlugged(n.layout, n.endpoint)
}

// powerOn gives the node fresh namespaces and links and starts it on its disk. powerOff must have cleared the rest of
// an earlier run.
func (n node) powerOn() error {
	if err := n.writeFiles(); err != nil {
		return fmt.Errorf("files of node %s: %w", n.name, err)
	}
	if err := ensureCgroups(cgroupRoot, n.name); err != nil {
		return fmt.Errorf("control groups of node %s: %w", n.name, err)
	}
	if err := plugEndpoint(n.layout, n.endpoint); err != nil {
		return err
	}
	p, err := startInit(n)
	if err != nil {
		return fmt.Errorf("start node %s: %w", n.name, err)
	}
	return writeProcess(n.pidFile(), p)
}

// powerOff cuts the node's links, kills all its processes and removes its network namespace and control groups. No
// error if it is off.
func (n node) powerOff() error {
	if err := unplugEndpoint(n.layout, n.endpoint); err != nil {
		return err
	}
	if p, ok := runningFrom(n.pidFile()); ok {
		// The kernel kills all of a pid namespace with its first process, and waits for them.
		if err := killAndWait([]process{p}); err != nil {
			return err
		}
	}
	if err := deleteNetns(n.netns); err != nil {
		return err
	}
	// Groups of dead pods would keep the kubelet of the next boot busy for seconds each.
	if err := removeCgroups(cgroupRoot, n.name); err != nil {
		return err
	}
	if err := os.Remove(n.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// writeFiles puts the node's configuration in place: everything but credentials.
func (n node) writeFiles() error {
	files := map[string]string{
		filepath.Join(n.etcDir(), "containerd.toml"):             containerdConfig(),
		filepath.Join(n.etcDir(), "certs.d/_default/hosts.toml"): allRegistries,
		filepath.Join(n.etcDir(), configFile):                    egretConfig(n.layout.options),
		filepath.Join(n.etcDir(), "kubelet.yaml"):                kubeletConfig(n.name, n.layout.dnsIPs()),
		filepath.Join(n.diskDir(), "upper/etc/hostname"):         n.name + "\n",
		filepath.Join(n.diskDir(), "upper/etc/resolv.conf"):      "",
		// no network outside the fabric, so no name server
		filepath.Join(n.diskDir(), "upper/etc/hosts"): hostsFile(n.layout),
	}
	if n.layout.options.CNI == PTP {
		conflist, err := ptpConflist(n.layout, n.number)
		if err != nil {
			return err
		}
		files[filepath.Join(n.diskDir(), "upper/etc/cni/net.d/10-ptp.conflist")] = conflist
	}
	for file, content := range files {
		if err := writeFile(file, content, 0o644); err != nil {
			return err
		}
	}
	if err := n.installPlugins(filepath.Join(n.diskDir(), "upper/opt/cni/bin")); err != nil {
		return err
	}
	return n.writeSpec()
}

// installPlugins fills dir, the node's /opt/cni/bin: Debian's plugins as links, Egret's as a copy, as its installer
// would leave it. Without a pod network of the sandbox's, who installs one brings its plugin.
func (n node) installPlugins(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	const debian = "/usr/lib/cni"
	plugins, err := os.ReadDir(filepath.Join(n.layout.options.rootDir(), debian))
	if err != nil {
		return fmt.Errorf("CNI plugins of the root folder: %w", err)
	}
	for _, p := range plugins {
		err := os.Symlink(filepath.Join(debian, p.Name()), filepath.Join(dir, p.Name()))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if n.layout.options.CNI == None {
		return nil
	}
	own, err := os.ReadFile(n.layout.options.binaryPath("egret-cni"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // Up has said that it is missing
	}
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "egret-cni"), own, 0o755)
}

func (n node) writeSpec() error {
	spec, err := n.initSpec()
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(n.specFile(), content, 0o644)
}

func (n node) initSpec() (nodeinit.Spec, error) {
	o := n.layout.options
	boot, err := n.bootID()
	if err != nil {
		return nodeinit.Spec{}, err
	}
	have := func(program string) bool { _, err := os.Stat(o.binaryPath(program)); return err == nil }
	return nodeinit.Spec{
		Hostname: n.name,
		Lower:    o.rootDir(),
		Disk:     n.diskDir(),
		BootID:   boot,
		Binds: []nodeinit.Bind{
			{Source: n.etcDir(), Target: nodeEtc},
			{Source: n.logDir(), Target: "/var/log"},
			// containerd's snapshots are overlays themselves, and cannot lie on one.
			{Source: filepath.Join(n.diskDir(), "containerd"), Target: "/var/lib/containerd"},
			{Source: filepath.Join(n.diskDir(), "kubelet"), Target: "/var/lib/kubelet"},
			{Source: o.BinDir, Target: nodeBin, ReadOnly: true},
			{Source: o.imageDir(), Target: nodeImages, ReadOnly: true},
		},
		Dirs: []string{"/run/openvswitch", "/run/ovn", "/run/netns", "/var/lib/ovn", "/etc/openvswitch",
			"/etc/cni/net.d", "/opt/cni/bin", StaticPods},
		Units:   nodeUnits(n.layout, n.endpoint, n.number, n.datapath, imageFiles(o), have),
		Env:     n.initEnv(),
		Sysctls: nodeSysctls(),
	}, nil
}

// bootID is another after each power-on. Containers see the machine's own: where a pod network runs in them it has to
// be the kubelet's as well, and no boot of the node is told from another.
func (n node) bootID() (string, error) {
	file := "/proc/sys/kernel/random/boot_id"
	if n.layout.options.CNI != None {
		file = "/proc/sys/kernel/random/uuid" // another one each time that it is read
	}
	boot, err := os.ReadFile(file)
	return strings.TrimSpace(string(boot)), err
}

func (n node) initEnv() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + nodeBin,
		"HOME=/root", "LANG=C.UTF-8", markerOf(n.layout),
	}
}

// nodeSysctls are the settings of a node's network namespace: a router that takes packets on any link (the egress IPs'
// replies come in elsewhere than they would leave).
func nodeSysctls() []nodeinit.Setting {
	return []nodeinit.Setting{
		{Path: "net/ipv4/ip_forward", Value: "1"},
		{Path: "net/ipv6/conf/all/forwarding", Value: "1"},
		{Path: "net/ipv6/conf/default/forwarding", Value: "1"},
		{Path: "net/ipv4/conf/all/rp_filter", Value: "2"},
		{Path: "net/ipv4/conf/default/rp_filter", Value: "2"},
		{Path: "net/ipv4/conf/" + uplink + "/rp_filter", Value: "2"},
	}
}

// askInit asks the node's first process about the node's processes.
func (n node) askInit(ctx context.Context, req nodeinit.Request) ([]nodeinit.Status, error) {
	p, err := n.init()
	if err != nil {
		return nil, err
	}
	return nodeinit.Ask(ctx, p.pid, req)
}

func hostsFile(l layout) string {
	text := "127.0.0.1 localhost\n::1 localhost\n"
	for _, e := range append(l.nodeEndpoints(), l.hostEndpoints()...) {
		for _, ip := range e.ips {
			text += ip.String() + " " + e.name + "\n"
		}
	}
	return text
}
