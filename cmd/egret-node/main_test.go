package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/world"
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
	o, _, _, _ := readFlags([]string{"--node-name=n1", "--kubeconfig=k"})
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

// TestSettingsReachTheAgent: the ConfigMap's keys are variables of the environment, and a wrong one is refused.
func TestSettingsReachTheAgent(t *testing.T) {
	t.Setenv("EGRET_SETTING_KUBERNETES_SERVICE_HOST", "192.0.2.1")
	defaults, _, _, err := readFlags([]string{"--node-name=n1"})
	if err != nil || defaults.APIServer != "192.0.2.1:6443" || defaults.Config.UplinkInterface != "eth0" ||
		defaults.Lease != 40*time.Second {
		t.Errorf("without other keys: %+v, %v", defaults, err)
	}
	for key, value := range map[string]string{"GATEWAY_MODE": "local", "GATEWAY_INTERFACE": "bond0",
		"AGENT_LEASE_DURATION": "60"} {
		t.Setenv("EGRET_SETTING_"+key, value)
	}
	o, _, _, err := readFlags([]string{"--node-name=n1"})
	if err != nil || o.Config.GatewayMode != world.LocalGateway || o.Config.Bridge != "brbond0" ||
		o.Lease != time.Minute {
		t.Errorf("with keys: %+v, %v", o, err)
	}
	t.Setenv("EGRET_SETTING_GATEWAY", "local")
	if _, _, _, err := readFlags([]string{"--node-name=n1"}); err == nil || !strings.Contains(err.Error(), "GATEWAY,") {
		t.Errorf("a key that is no setting: %v", err)
	}
}
