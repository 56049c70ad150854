package nodeinit

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// deviceNode is a character device of the node's /dev.
type deviceNode struct {
	path         string
	mode         uint32
	major, minor uint32
}

func deviceNodes() []deviceNode {
	return []deviceNode{
		{"null", 0o666, 1, 3},
		{"zero", 0o666, 1, 5},
		{"full", 0o666, 1, 7},
		{"random", 0o666, 1, 8},
		{"urandom", 0o666, 1, 9},
		{"kmsg", 0o644, 1, 11}, // the kubelet watches it for killed processes
		{"tty", 0o666, 5, 0},
		{"net/tun", 0o666, 10, 200}, // internal ports of OVS' userspace datapath
	}
}

func deviceLinks() map[string]string {
	return map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	}
}

// mountDev fills /dev of the node with what its processes and containers need and nothing of the machine's.
func mountDev(root string) error {
	dev := filepath.Join(root, "dev")
	if err := mountAt("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	for _, dir := range []string{"net", "pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dev, dir), 0o755); err != nil {
			return err
		}
	}
	if err := makeDeviceFiles(dev); err != nil {
		return err
	}
	if err := mountAt("devpts", filepath.Join(dev, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=620"); err != nil {
		return err
	}
	if err := mountAt("mqueue", filepath.Join(dev, "mqueue"), "mqueue", unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return err
	}
	return mountAt("tmpfs", filepath.Join(dev, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
}

func makeDeviceFiles(dev string) error {
	old := unix.Umask(0)
	defer unix.Umask(old)
	for _, d := range deviceNodes() {
		if err := unix.Mknod(filepath.Join(dev, d.path), unix.S_IFCHR|d.mode,
			int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("make device %s: %w", d.path, err)
		}
	}
	for name, target := range deviceLinks() {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}
