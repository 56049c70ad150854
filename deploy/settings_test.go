package deploy_test

import (
	"strings"
	"testing"
)

// TestSettingsComeFromTheEnvironment: no argument names a key of the ConfigMap. Kubernetes passes an argument $(KEY) as
// it stands where the ConfigMap lacks the key, so that a program of a new version would not start.
func TestSettingsComeFromTheEnvironment(t *testing.T) {
	for name, p := range pods(t) {
		reads := 0
		for _, c := range containers(p) {
			for _, a := range append(c.Command, c.Args...) {
				if strings.Contains(strings.ReplaceAll(a, "$(NODE_NAME)", ""), "$(") {
					t.Errorf("%s of %s has the argument %s", c.Name, name, a)
				}
			}
			for _, from := range c.EnvFrom {
				reads++
				if from.Prefix != "EGRET_SETTING_" || from.ConfigMapRef == nil || from.ConfigMapRef.Name != "egret" {
					t.Errorf("%s of %s has the environment %+v", c.Name, name, from)
				}
			}
		}
		if reads != 1 {
			t.Errorf("%d containers of %s read the settings, want 1", reads, name)
		}
	}
}
