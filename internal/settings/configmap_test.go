package settings

import (
	"os"
	"regexp"
	"testing"
)

// TestConfigMap: the keys are those that egret-node gets these flags from.
func TestConfigMap(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/cluster/egret-node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{}
	flags := regexp.MustCompile(`--([a-z0-9-]+)=\$\(([A-Z0-9_]+)\)`)
	for _, m := range flags.FindAllStringSubmatch(string(manifest), -1) {
		given[m[2]] = m[1]
	}
	for key, flag := range inConfigMap {
		if given[key] != flag {
			t.Errorf("%s is the agent's --%s, not --%s", key, given[key], flag)
		}
	}
	if FlagOf("REACHABILITY_TIMEOUT") != "" {
		t.Error("how nodes are probed is taken for something that plans depend on")
	}
}
