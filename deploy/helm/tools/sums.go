package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// writeSums records from what the manifests were made and what came out, as sha256sum does. By that a test of package
// deploy tells without Helm that somebody has changed the one and not the other.
func writeSums() error {
	var sums strings.Builder
	root := os.DirFS(manifestFolder)
	add := func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() { // links are alerts and dashboards, of which no manifest is made
			return err
		}
		text, err := fs.ReadFile(root, path)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), path)
		return err
	}
	manifests, err := readManifests()
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(manifests[name])), name)
	}
	if err == nil {
		err = fs.WalkDir(root, "helm/egret", add)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(sumsFile, []byte(sums.String()), 0o644)
}
