package image

import (
	"debug/buildinfo"
	"runtime/debug"
	"slices"
	"testing"
)

// TestModuleOfOurOwnIsNoComponent: the Go command records a folder in place of a version there.
func TestModuleOfOurOwnIsNoComponent(t *testing.T) {
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.org/one", Version: "v1.2.3"},
		{Path: "github.com/egret-net/egret/api", Version: "v0.0.0", Replace: &debug.Module{Path: "./api"}},
		{Path: "example.org/two", Version: "v1.0.0",
			Replace: &debug.Module{Path: "example.org/Fork", Version: "v1.0.1"}},
	}}
	var have []string
	for _, c := range recordedComponents(info) {
		have = append(have, c.purl)
	}
	want := []string{"pkg:golang/stdlib@1.26.8", "pkg:golang/example.org/one@v1.2.3",
		"pkg:golang/example.org/fork@v1.0.1"}
	if !slices.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
}
