package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// loadOrder lists the files of the named modules and of all that they need, each after what it needs, from
// modules.dep(5). A module that is built into the kernel, or needed by two, is not listed, or not twice.
func loadOrder(k kernel, names ...string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(k.modules, "modules.dep"))
	if err != nil {
		return nil, err
	}
	needs := map[string][]string{} // by module name: its file, then what it needs, the nearest first
	for line := range strings.Lines(string(content)) {
		file, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		needs[moduleName(file)] = append([]string{file}, strings.Fields(rest)...)
	}
	var order []string
	for _, name := range names {
		files, ok := needs[name]
		if !ok {
			return nil, fmt.Errorf("kernel %s has no module %s", k.version, name)
		}
		for _, f := range slices.Backward(files) {
			if !slices.Contains(order, f) {
				order = append(order, f)
			}
		}
	}
	return order, nil
}

func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".ko"), "-", "_")
}
