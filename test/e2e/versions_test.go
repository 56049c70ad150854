package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// TestVersions: a program's --version, its metric, the EgressNode and the columns of kubectl get egn -o wide say one
// version.
func TestVersions(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	want := map[string]string{}
	for _, program := range []string{"egret-node", "egret-controller"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(c.Options().BinDir, program), "--version").Output()
		name, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if err != nil || name != program || version == "" {
			t.Fatalf("%s --version prints %q, %v", program, out, err)
		}
		want[program] = version
	}
	wide, err := c.Kubectl(t.Context(), "get", "egn", "-o", "wide", "--no-headers").CombinedOutput()
	shown := strings.Count(string(wide), want["egret-node"]+egretv1.AnswersMark)
	if err != nil || shown != len(c.nodes) {
		t.Errorf("kubectl get egn -o wide shows the version of %d agents, want %d: %v\n%s", shown, len(c.nodes), err,
			wide)
	}
	for i, m := range c.nodes {
		c.saysVersion(t, m, sandbox.AgentMetricsPort, want["egret-node"])
		if i < sandbox.ControllerNodes {
			c.saysVersion(t, m, sandbox.ControllerMetricsPort, want["egret-controller"])
		}
	}
}

func (c *cluster) saysVersion(t *testing.T, m sandbox.Member, port int, version string) {
	t.Helper()
	within(t, soon, func() error {
		said, err := scrape(t.Context(), m, port)
		if err == nil && said.value("egret_build_info", label("version", version)) != 1 {
			err = fmt.Errorf("port %d of %s has no egret_build_info of version %s", port, m.Name, version)
		}
		return err
	})
}
