package nodeinit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// enterRoot mounts the node's root folder and makes it the root of this process. Everything happens in the node's own
// mount namespace: the machine never sees these mounts, and they are gone with the node's last process.
func enterRoot(s Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	root := filepath.Join(s.Disk, "root")
	steps := []struct {
		what string
		do   func() error
	}{
		{"overlay of " + s.Lower, func() error { return mountOverlay(s, root) }},
		{"device files", func() error { return mountDev(root) }},
		{"kernel file systems", func() error { return mountKernel(root) }},
		{"memory file systems", func() error { return mountMemory(root) }},
		{"folders of the machine", func() error { return bindAll(root, s.Binds) }},
		{"pivot_root", func() error { return pivotRoot(root) }},
		{"files over the machine's settings", func() error { return coverKernelSettings(s.BootID) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func mountOverlay(s Spec, root string) error {
	upper, work := filepath.Join(s.Disk, "upper"), filepath.Join(s.Disk, "work")
	for _, dir := range []string{root, upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", s.Lower, upper, work)
	return mountAt("overlay", root, "overlay", 0, options)
}

// mountKernel mounts proc and sysfs of the node's namespaces, and the machine's control groups.
func mountKernel(root string) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := mountAt("proc", filepath.Join(root, "proc"), "proc", safe, ""); err != nil {
		return err
	}
	if err := mountAt("sysfs", filepath.Join(root, "sys"), "sysfs", safe, ""); err != nil {
		return err
	}
	return mountAt("/sys/fs/cgroup", filepath.Join(root, "sys/fs/cgroup"), "", unix.MS_BIND|unix.MS_REC, "")
}

func mountMemory(root string) error {
	for dir, options := range map[string]string{"run": "mode=755", "tmp": "mode=1777"} {
		if err := mountAt("tmpfs", filepath.Join(root, dir), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
			options); err != nil {
			return err
		}
	}
	return nil
}

func bindAll(root string, binds []Bind) error {
	for _, b := range binds {
		target := filepath.Join(root, b.Target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := mountAt(b.Source, target, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if !b.ReadOnly {
			continue
		}
		if err := mountAt("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return err
		}
	}
	return nil
}

// pivotRoot makes root the root folder and lets go of the old one. Its mounts become shared within the node, which
// containers with bidirectional mount propagation rely on.
func pivotRoot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the machine's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

// coverKernelSettings puts files over those settings of the kernel that are the whole machine's: the kubelet writes
// them, and a node must not change the machine. The boot id is one too, and must be another after each power-on.
func coverKernelSettings(bootID string) error {
	const covers = "/run/egret/sys"
	if err := os.MkdirAll(covers, 0o755); err != nil {
		return err
	}
	for _, s := range []Setting{
		{"/proc/sys/kernel/random/boot_id", bootID},
		{"/proc/sys/kernel/panic", "10"},
		{"/proc/sys/kernel/panic_on_oops", "1"},
		{"/proc/sys/kernel/keys/root_maxkeys", "1000000"},
		{"/proc/sys/kernel/keys/root_maxbytes", "25000000"},
		{"/proc/sys/vm/overcommit_memory", "1"},
		{"/proc/sys/vm/panic_on_oom", "0"},
	} {
		if _, err := os.Stat(s.Path); err != nil {
			continue
		}
		cover := filepath.Join(covers, strings.ReplaceAll(strings.TrimPrefix(s.Path, "/proc/sys/"), "/", "."))
		if err := os.WriteFile(cover, []byte(s.Value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mountAt(cover, s.Path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func mountAt(source, target, fstype string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
