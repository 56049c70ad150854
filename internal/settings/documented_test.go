package settings

import (
	"slices"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

// TestSettingsAreDocumented compares docs/reference.md with the keys of the ConfigMap and with the lines of
// --config-file.
func TestSettingsAreDocumented(t *testing.T) {
	keys, flags := map[string]string{}, []string{}
	for key, flag := range flagByKey {
		keys[flag], flags = "`"+key+"`", append(flags, flag)
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
