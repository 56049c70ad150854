package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestKubeconfig: the command prints the file, or its name, and says so if there is no such sandbox.
func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	if _, err := run("--state-dir", dir, "--name", "x", "kubeconfig"); err == nil ||
		!strings.Contains(err.Error(), "egret-sandbox up") {
		t.Errorf("without a sandbox: %v, want an error that says what to do", err)
	}
	write(t, filepath.Join(dir, "x", "sandbox.json"), `{"options": {"Name": "x"}}`)
	o := sandbox.Defaults()
	o.StateDir, o.Name = dir, "x"
	c, err := sandbox.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.Kubeconfig(), "kind: Config\n")
	for flag, want := range map[string]string{"--path=false": "kind: Config\n", "--path": c.Kubeconfig() + "\n"} {
		if have, err := run("--state-dir", dir, "--name", "x", "kubeconfig", flag); err != nil || have != want {
			t.Errorf("kubeconfig %s prints %q, %v, want %q", flag, have, err, want)
		}
	}
}

func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.Execute()
	return out.String(), err
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
