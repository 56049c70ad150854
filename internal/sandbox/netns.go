package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netnsDir is where ip netns keeps namespaces by name.
const netnsDir = "/run/netns"

func netnsPath(name string) string { return filepath.Join(netnsDir, name) }

// InNetns runs do on a thread of its own inside the named network namespace. Sockets opened and processes started by
// do stay in it. The thread is thrown away: a thread that could not change back would poison the pool.
func InNetns(name string, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ns, err := netns.GetFromPath(netnsPath(name))
		if err != nil {
			result <- fmt.Errorf("network namespace %s: %w", name, err)
			return
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			result <- fmt.Errorf("enter network namespace %s: %w", name, err)
			return
		}
		result <- do()
	}()
	return <-result
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

// deleteNetns removes the name and, once its last process has ended, the namespace; no error if there is none.
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

// netnsID identifies the namespace behind a name, as the links /proc/PID/ns/net do; 0 if there is none.
func netnsID(name string) uint64 {
	if !isNetns(name) {
		return 0
	}
	return inode(netnsPath(name))
}

func inode(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}
