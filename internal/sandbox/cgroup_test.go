package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		if err := writeFile(filepath.Join(root, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestHierarchies(t *testing.T) {
	v1 := tree(t, map[string]string{"cpu/cgroup.procs": "", "cpuset/cgroup.procs": "", "unified/cgroup.procs": "",
		"not/a": ""})
	if err := os.Symlink("cpu", filepath.Join(v1, "cpu,cpuacct")); err != nil {
		t.Fatal(err)
	}
	v2 := tree(t, map[string]string{"cgroup.controllers": "cpu memory", "cgroup.procs": "",
		"system.slice/cgroup.procs": ""})
	for root, want := range map[string][]string{
		v1: {v1 + "/cpu", v1 + "/cpuset", v1 + "/unified"},
		v2: {v2},
	} {
		have, err := cgroupHierarchies(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := cgroupHierarchies(t.TempDir()); err == nil {
		t.Error("a machine without control groups is taken")
	}
}

func TestNodeGroupOfV1HasCPUs(t *testing.T) {
	root := tree(t, map[string]string{
		"cpuset/cgroup.procs": "", "cpuset/cpuset.cpus": "0-1\n", "cpuset/cpuset.mems": "0\n",
		"memory/cgroup.procs": "",
	})
	if err := ensureCgroups(root, "x-n1"); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"} {
		if have, err := os.ReadFile(filepath.Join(root, "cpuset/x-n1", f)); err != nil || string(have) != want {
			t.Errorf("%s: have %q, %v, want %q", f, have, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "memory/x-n1")); err != nil {
		t.Error(err)
	}
}

func TestNodeGroupOfV2IsDelegated(t *testing.T) {
	root := tree(t, map[string]string{"cgroup.controllers": "cpu memory\n", "cgroup.procs": "",
		"cgroup.subtree_control": ""})
	if err := ensureCgroups(root, "x-n1"); err != nil {
		t.Fatal(err)
	}
	// A plain file keeps the last write only; the kernel's adds up.
	if have, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); string(have) != "+memory" {
		t.Errorf("controllers for children: %q", have)
	}
}
