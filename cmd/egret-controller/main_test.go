package main

import (
	"os"
	"strings"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

func TestMain(m *testing.M) {
	docstest.AsProgram(func() { parseFlags([]string{"--help"}) }) //nolint:errcheck // it exits
	os.Exit(m.Run())
}

// TestFlagsAreDocumented compares docs/reference.md with egret-controller --help.
func TestFlagsAreDocumented(t *testing.T) { docstest.CompareFlags(t, "flags of egret-controller") }

// TestSettingsReachTheController: the ConfigMap's keys are variables of the environment. Keys of agents are allowed.
func TestSettingsReachTheController(t *testing.T) {
	_, err := parseFlags([]string{"--node-name=n1"})
	if err == nil || !strings.Contains(err.Error(), "give KUBERNETES_SERVICE_HOST") {
		t.Errorf("without the API server's address: %v", err)
	}
	for key, value := range map[string]string{"KUBERNETES_SERVICE_HOST": "192.0.2.1", "ENCAP_PORT": "6082",
		"GATEWAY_MODE": "local"} {
		t.Setenv("EGRET_SETTING_"+key, value)
	}
	o, err := parseFlags([]string{"--node-name=n1"})
	if err != nil || o.apiServer != "192.0.2.1:6443" || o.config.EncapPort != 6082 {
		t.Errorf("%+v, %v", o, err)
	}
}
