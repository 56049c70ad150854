package main

import (
	"maps"
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// TestManifestsAreTheDefault: deploy/ has what Helm makes of the chart with its default values, and nothing else.
func TestManifestsAreTheDefault(t *testing.T) {
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	want, err := renderManifests(c)
	if err != nil {
		t.Fatal(err)
	}
	have, err := readManifests()
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(want, func(name, text string) bool {
		same := have[name] == text
		if same {
			delete(have, name)
		}
		return same
	})
	if len(want)+len(have) > 0 {
		t.Errorf("of the chart come others than those in deploy: run make chart\nfrom the chart: %q\nin deploy: %q",
			slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)))
	}
}
