package deploy_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// rendering has each file that make chart reads or writes.
func rendering(t *testing.T) (names []string) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS("."), "helm/egret", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() { // links are alerts and dashboards, of which no manifest is made
			names = append(names, path)
		}
		return err
	}))
	removal, err := fs.Glob(os.DirFS("."), "remove/*.yaml")
	must(t, err)
	return append(slices.Sorted(slices.Values(append(manifests(t), removal...))), names...)
}

// manifests are those that are installed with kubectl.
func manifests(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.yaml", "cluster/*.yaml"} {
		found, err := fs.Glob(os.DirFS("."), pattern)
		must(t, err)
		names = append(names, found...)
	}
	return names
}

// TestManifestsAreRendered: the manifests are what Helm has made of the chart. Helm itself is too large for this
// module. It has written down of which chart it has made which manifests.
func TestManifestsAreRendered(t *testing.T) {
	var sums strings.Builder
	for _, name := range rendering(t) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(read(t, name))), name)
	}
	if diff := cmp.Diff(read(t, "helm/rendered.sha256"), sums.String()); diff != "" {
		t.Errorf("change the chart, not the manifests, and run make chart (-rendered +now):\n%s", diff)
	}
}

// TestValuesHaveAllSettings: the chart's values show the same keys, defaults and comments as the ConfigMap.
func TestValuesHaveAllSettings(t *testing.T) {
	_, want, _ := strings.Cut(read(t, "cluster/config.yaml"), "\ndata:\n")
	_, have, _ := strings.Cut(read(t, "helm/egret/values.yaml"), "\nsettings:\n")
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("settings (-cluster/config.yaml +helm/egret/values.yaml):\n%s", diff)
	}
}

// TestSchemaHasAllSettings: the schema refuses keys that it does not have.
func TestSchemaHasAllSettings(t *testing.T) {
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^  (?:# )?([A-Z0-9_]+): `).FindAllStringSubmatch(read(t, "cluster/config.yaml"), -1) {
		want = append(want, m[1])
	}
	type node struct{ Properties map[string]node }
	var schema node
	must(t, json.Unmarshal([]byte(read(t, "helm/egret/values.schema.json")), &schema))
	have := slices.Sorted(maps.Keys(schema.Properties["settings"].Properties))
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), have); diff != "" {
		t.Errorf("settings (-cluster/config.yaml +values.schema.json):\n%s", diff)
	}
}

// TestRangesHaveTheirDefaults: where no value gives a range, the chart compares the one that the programs take.
func TestRangesHaveTheirDefaults(t *testing.T) {
	config, want, have := read(t, "cluster/config.yaml"), map[string]string{}, map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  # ([A-Z0-9_]*SUBNET[A-Z0-9_]*): (\S+)$`).FindAllStringSubmatch(config, -1) {
		want[m[1]] = m[2]
	}
	helpers := read(t, "helm/egret/templates/_helpers.tpl")
	for _, m := range regexp.MustCompile(`(?m)^  "([A-Z0-9_]+)" "(\S+)"`).FindAllStringSubmatch(helpers, -1) {
		have[m[1]] = m[2]
	}
	if diff := cmp.Diff(want, have); diff != "" || len(want) < 10 {
		t.Errorf("ranges (-cluster/config.yaml +chart):\n%s", diff)
	}
}

// TestKustomizationHasAll: kubectl apply -k installs what kubectl apply -f does, in the same order.
func TestKustomizationHasAll(t *testing.T) {
	var k struct{ Resources []string }
	must(t, yaml.Unmarshal([]byte(read(t, "Kustomization")), &k))
	if diff := cmp.Diff(manifests(t), k.Resources); diff != "" {
		t.Errorf("resources (-files +Kustomization):\n%s", diff)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	return string(text)
}
