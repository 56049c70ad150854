package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

// renewPrograms brings programs into force that were built since the node started. It installs the CNI plugin again and
// ends processes whose file is no longer there, which init then starts from the new one. It returns their names.
func (n node) renewPrograms(ctx context.Context) ([]string, error) {
	p, err := n.init()
	if err != nil {
		return nil, err
	}
	root := fmt.Sprintf("/proc/%d/root", p.pid)
	if err := n.installPlugins(root + "/opt/cni/bin"); err != nil {
		return nil, err
	}
	units, err := nodeinit.Ask(ctx, p.pid, nodeinit.Request{Op: "list"})
	if err != nil {
		return nil, err
	}
	var renewed []string
	for _, u := range units {
		// The kernel marks the link when the file has been replaced, as a build does.
		exe, err := os.Readlink(fmt.Sprintf("%s/proc/%d/exe", root, u.PID))
		if u.PID == 0 || err != nil || !strings.HasSuffix(exe, " (deleted)") {
			continue
		}
		if _, err := nodeinit.Ask(ctx, p.pid,
			nodeinit.Request{Op: "kill", Unit: u.Name, Signal: syscall.SIGTERM}); err != nil {
			return nil, err
		}
		renewed = append(renewed, u.Name)
	}
	return renewed, nil
}
