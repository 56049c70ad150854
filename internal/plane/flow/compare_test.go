package flow

import (
	"slices"
	"testing"
)

// TestDifferences: flows that differ in nothing but their cookie are the same, and others' flows are not looked at.
func TestDifferences(t *testing.T) {
	text := `-priority=105,ip cookie=0x20deff105 actions=LOCAL
+priority=105,ip actions=LOCAL
-priority=104,ip cookie=0x20deff105 actions=drop
-table=4 priority=10,arp cookie=0xdeff106 hard_timeout=70 actions=drop
-priority=1 actions=NORMAL
+priority=100,ip actions=drop
`
	var have []string
	for _, d := range differences("breth0", text) {
		have = append(have, d.String())
	}
	want := []string{
		"flow missing: breth0 priority=100,ip actions=drop", "flow unwanted: breth0 priority=104,ip actions=drop",
	}
	if !slices.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
}
