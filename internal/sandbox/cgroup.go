package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where the machine mounts its control groups.
const cgroupRoot = "/sys/fs/cgroup"

// cgroupHierarchies lists the hierarchies below root: the root itself with cgroup v2, a folder each with v1 (and the
// hybrid form, whose v2 hierarchy runc uses too).
func cgroupHierarchies(root string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && e.IsDir() { // not cpu,cpuacct's links
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no control groups in %s: mount cgroup2, or the cgroup v1 hierarchies", root)
	}
	return dirs, nil
}

// ensureCgroups makes the parent group of a node's pods in every hierarchy.
func ensureCgroups(root, name string) error {
	hierarchies, err := cgroupHierarchies(root)
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		dir := filepath.Join(h, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := inheritCpuset(h, dir); err != nil {
			return err
		}
		delegateControllers(h)
		delegateControllers(dir)
	}
	return nil
}

// inheritCpuset copies the CPUs and memory nodes: a new cpuset group of v1 has none, and takes no process then.
func inheritCpuset(parent, dir string) error {
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(parent, f))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f), content, 0o644); err != nil {
			return fmt.Errorf("copy %s: %w", f, err)
		}
	}
	return nil
}

// delegateControllers hands a v2 group's controllers to its children. A controller that the machine withholds stays
// withheld: the kubelet says so if it needs it.
func delegateControllers(dir string) {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, c := range strings.Fields(string(content)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

// removeCgroups removes a node's groups and all below, for up to 5 s: a group stays busy for a moment after its last
// process has ended.
func removeCgroups(root, name string) error {
	hierarchies, err := cgroupHierarchies(root)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(5 * time.Second)
	for _, h := range hierarchies {
		for {
			err := removeCgroupTree(filepath.Join(h, name))
			if err == nil {
				break
			}
			if time.Now().After(deadline) || !errors.Is(err, unix.EBUSY) {
				return fmt.Errorf("remove control group: %w", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

func removeCgroupTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.Reverse(dirs)
	for _, d := range dirs {
		if err := unix.Rmdir(d); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}
