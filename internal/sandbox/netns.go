package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netnsDir is where ip netns keeps namespaces by name.
const netnsDir = "/run/netns"

func netnsPath(name string) string { return filepath.Join(netnsDir, name) }

// InNetns runs do on a thread of its own inside the named network namespace. Sockets opened and processes started by
// do stay in it. The thread is thrown away: a thread that could not change back would poison the pool.
func InNetns(name string, do func() error) error {
	return onThread(func() error {
		if err := enterNetns(netnsPath(name)); err != nil {
			return err
		}
		return do()
	})
}

// InPod does the same inside the network namespace of the pod that has this address on a node, as its container
// runtime keeps them.
func (c *Cluster) InPod(node string, ip netip.Addr, do func() error) error {
	for _, n := range c.allNodes() {
		if n.name != node {
			continue
		}
		p, err := n.init()
		if err != nil {
			return err
		}
		return onThread(func() error {
			if err := enterNetnsWith(ip, filepath.Join("/proc", strconv.Itoa(p.pid), "root", netnsDir)); err != nil {
				return fmt.Errorf("%s: %w", node, err)
			}
			return do()
		})
	}
	return fmt.Errorf("no node %q: there are %s", node, c.memberNames())
}

func onThread(do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		result <- do()
	}()
	return <-result
}

func enterNetns(path string) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", path, err)
	}
	defer ns.Close()
	if err := netns.Set(ns); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	return nil
}

// enterNetnsWith enters the first network namespace in a folder that has the address.
func enterNetnsWith(ip netip.Addr, dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := enterNetns(path); err != nil {
			continue // its pod may be just starting or ending
		}
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == ip {
				return nil
			}
		}
	}
	return fmt.Errorf("no network namespace in %s has %s", dir, ip)
}

// ensureNetns makes the named network namespace if it is not there.
func ensureNetns(name string) (made bool, err error) {
	if isNetns(name) {
		return false, nil
	}
	if err := deleteNetns(name); err != nil { // a name without a namespace, left by a crash between two steps
		return false, err
	}
	if err := shareNetnsDir(); err != nil {
		return false, fmt.Errorf("make %s a shared mount: %w", netnsDir, err)
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ns, err := netns.NewNamed(name)
		if err == nil {
			err = ns.Close()
		}
		result <- err
	}()
	if err := <-result; err != nil {
		return false, fmt.Errorf("make network namespace %s: %w", name, err)
	}
	return true, nil
}

// shareNetnsDir makes the folder of names a shared mount, as ip-netns(8) does at its first "add" on a machine. Were it
// left to that, the folder would be mounted over itself later, and hide the mounts on names that are there: their files
// would stay busy in this mount namespace.
func shareNetnsDir() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(netnsDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil { // ip(8) takes the same lock
		return err
	}
	err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if !errors.Is(err, unix.EINVAL) { // EINVAL: no mount point yet
		return err
	}
	if err := unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
}

// deleteNetns removes the name and, once its last process has ended, the namespace; no error if the name does not
// exist.
func deleteNetns(name string) error {
	path := netnsPath(name)
	for { // several mounts can lie on one name
		err := unix.Unmount(path, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			break
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func isNetns(name string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(netnsPath(name), &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// netnsID identifies the namespace behind a name, as the links /proc/PID/ns/net do; 0 if the name does not exist.
func netnsID(name string) uint64 {
	if !isNetns(name) {
		return 0
	}
	return inodeOf(netnsPath(name))
}

func inodeOf(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}
