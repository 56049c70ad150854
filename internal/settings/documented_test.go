package settings

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

// TestSettingsAreDocumented compares docs/reference.md with the keys of the ConfigMap, as the manifests pass them to
// the programs, and with the lines of --config-file.
func TestSettingsAreDocumented(t *testing.T) {
	keys, flags := map[string]string{}, []string{}
	passed := regexp.MustCompile(`--([a-z0-9-]+)=\$\(([A-Z0-9_]+)\)`)
	for _, program := range []string{"egret-node", "egret-controller"} {
		manifest, err := os.ReadFile("../../deploy/cluster/" + program + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range passed.FindAllStringSubmatch(string(manifest), -1) {
			if m[2] != "NODE_NAME" {
				keys[m[1]], flags = "`"+m[2]+"`", append(flags, m[1])
			}
		}
	}
	lines := map[string]string{}
	for _, s := range settings {
		if lines[s.flag] != "" {
			lines[s.flag] += ", or "
		}
		lines[s.flag] += "`" + s.key + "` in `[" + s.section + "]`"
		flags = append(flags, s.flag)
	}
	slices.Sort(flags)
	table := docstest.Row("flag", "key of the ConfigMap", "line of the file") + "|---|---|---|\n"
	for _, flag := range slices.Compact(flags) {
		table += docstest.Row("`--"+flag+"`", keys[flag], lines[flag])
	}
	docstest.ComparePart(t, "settings", table)
}
