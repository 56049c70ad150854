package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

func TestMain(m *testing.M) {
	docstest.AsProgram(func() { readFlags([]string{"--help"}) }) //nolint:errcheck // it exits
	os.Exit(m.Run())
}

// TestFlagsAreDocumented compares docs/reference.md with egret-node --help.
func TestFlagsAreDocumented(t *testing.T) { docstest.CompareFlags(t, "flags of egret-node") }

// TestAgentPortIsDeclared: the DaemonSet declares the default of --agent-port, which no pod gets as hostPort then.
func TestAgentPortIsDeclared(t *testing.T) {
	o, _, _, _ := readFlags([]string{"--node-name=n1"})
	text, err := os.ReadFile("../../deploy/cluster/egret-node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	port := o.Config.AgentPort
	if want := fmt.Sprintf("{name: agents, containerPort: %d, protocol: TCP}", port); port == 0 ||
		!strings.Contains(string(text), want) || strings.Contains(string(text), "--agent-port=") {
		t.Errorf("the manifest does not declare port %d alone", port)
	}
}
