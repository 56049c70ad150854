package vm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

const cgroups = "/sys/fs/cgroup"

// cgroup: with cgroup v2 a node has one group, whose controllers its containers can use; runc puts a container into it;
// and both are gone when the node's power is.
func (l *kernelLab) cgroup() {
	node := l.nodes[0].Name
	group := filepath.Join(cgroups, node)
	if have := l.read(filepath.Join(group, "cgroup.subtree_control")); !strings.Contains(have, "memory") ||
		!strings.Contains(have, "pids") {
		l.t.Errorf("%s hands down %q, want memory and pids among them", group, have)
	}
	l.eventually("import of the pause image", func(ctx context.Context) error {
		out, err := l.ExecIn(ctx, node, "ctr", "--namespace", "k8s.io", "images", "list", "--quiet")
		if err == nil && !strings.Contains(string(out), "pause") {
			err = errors.New("not there yet")
		}
		return err
	})
	l.in(node, "ctr", "--namespace", "k8s.io", "run", "--detach", "--cgroup", "/"+node+"/pause", "localhost/pause:1",
		"pause")
	pid := strings.TrimSpace(l.read(filepath.Join(group, "pause/cgroup.procs")))
	if pid == "" {
		l.t.Fatal("no process in the container's group")
	}
	l.t.Logf("process %s: %s", pid, l.read("/proc/"+pid+"/cgroup"))
	if err := l.PowerOff(node); err != nil {
		l.t.Fatal(err)
	}
	for _, gone := range []string{group, "/proc/" + pid + "/exe"} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			l.t.Errorf("%s is there after power-off: %v", gone, err)
		}
	}
}

func (l *kernelLab) read(file string) string {
	l.t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		l.t.Error(err)
	}
	return string(content)
}
