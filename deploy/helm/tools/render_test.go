package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
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

// TestPackageNamesItsImage: charts of two versions name two images, so that Helm can go back from one to the other.
func TestPackageNamesItsImage(t *testing.T) {
	for version, image := range map[string]string{
		"v1.2.3-4-g0123": "image: localhost/egret:v1.2.3-4-g0123\n", "v1.2.3+x": "image: localhost/egret:v1.2.3_x\n",
		"": "image: localhost/egret:v0.1.0\n",
	} {
		c, err := loader.LoadDir(chartFolder)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := writePackage(c, folder, version); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(folder, "egret-"+strings.TrimPrefix(version, "v")+"*.tgz"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %q, %v", version, files, err)
		}
		packaged, err := loader.LoadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		manifests, err := renderManifests(packaged)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(slices.Collect(maps.Values(manifests)), "")
		if count := strings.Count(all, "image: "); count == 0 || strings.Count(all, image) != count {
			t.Errorf("%s: not all of %d containers have %s", version, count, image)
		}
	}
}
