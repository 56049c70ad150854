package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/test/kernel/boot"
)

// mountPoint is one mount of the machine, below /root until that is the root folder.
type mountPoint struct {
	source, target, kind string
	flags                uintptr
	options              string
}

// 9p with a cache: programs are mapped into memory, and run from it.
const nineP = "trans=virtio,version=9p2000.L,msize=512000"

func mounts() []mountPoint {
	return []mountPoint{
		{boot.CacheTag, "/cache", "9p", unix.MS_RDONLY, nineP + ",cache=loose"},
		{"tmpfs", "/disk", "tmpfs", 0, ""},
		{"overlay", "/root", "overlay", 0, "lowerdir=/cache/root,upperdir=/disk/upper,workdir=/disk/work"},
		{"proc", "/root/proc", "proc", 0, ""},
		{"sysfs", "/root/sys", "sysfs", 0, ""},
		{"cgroup2", "/root/sys/fs/cgroup", "cgroup2", 0, ""},
		{"devtmpfs", "/root/dev", "devtmpfs", 0, ""},
		{"devpts", "/root/dev/pts", "devpts", 0, ""},
		{"tmpfs", "/root/run", "tmpfs", 0, ""},
		{"tmpfs", "/root/tmp", "tmpfs", 0, ""},
		// nodes' disks: an overlay's upper folder cannot lie on an overlay
		{"tmpfs", "/root/var/lib/egret", "tmpfs", 0, ""},
		{"/cache", "/root" + boot.Cache, "", unix.MS_BIND, ""}, // a tag can be mounted once
		{boot.ShareTag, "/root" + boot.Share, "9p", 0, nineP + ",cache=mmap"},
		{"/cache/kernel/lib/modules", "/root/usr/lib/modules", "", unix.MS_BIND, ""},
	}
}

// enterRoot mounts all and moves the new root over the initial one, which nothing needs any more.
func enterRoot() error {
	for _, m := range mounts() {
		if err := m.mount(); err != nil {
			return err
		}
	}
	if err := os.Chdir("/root"); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	return os.Chdir("/")
}

func (m mountPoint) mount() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
		return fmt.Errorf("mount %s: %w", m.target, err)
	}
	if m.target != "/disk" {
		return nil
	}
	if err := os.Mkdir("/disk/upper", 0o755); err != nil {
		return err
	}
	return os.Mkdir("/disk/work", 0o755)
}
