package sandbox

import (
	"slices"
	"strings"
	"testing"
)

// TestKubectlIsOfTheSandbox: kubectl asks the sandbox, and finds kubectl-egret, whatever the caller's environment
// names.
func TestKubectlIsOfTheSandbox(t *testing.T) {
	t.Setenv("KUBECONFIG", "/another/cluster")
	t.Setenv("PATH", "/usr/bin")
	o := Defaults()
	o.StateDir, o.BinDir = t.TempDir(), "/opt/egret"
	c := &Cluster{layout: newLayout(o)}
	cmd := c.Kubectl(t.Context(), "egret", "explain")
	if want := []string{"/opt/egret/egret-controlplane", "kubectl", "egret", "explain"}; !slices.Equal(cmd.Args, want) {
		t.Errorf("arguments %q, want %q", cmd.Args, want)
	}
	var have []string
	for _, e := range cmd.Environ() {
		if strings.HasPrefix(e, "KUBECONFIG=") || strings.HasPrefix(e, "PATH=") {
			have = append(have, e)
		}
	}
	slices.Sort(have)
	if want := []string{"KUBECONFIG=" + c.Kubeconfig(), "PATH=/opt/egret:/usr/bin"}; !slices.Equal(have, want) {
		t.Errorf("environment %q, want %q", have, want)
	}
}
