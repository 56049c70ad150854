package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// header begins each manifest.
const header = "# Made by make chart from deploy/helm/egret/templates/%s.\n"

// removeFolder has what Helm makes with the value remove instead of agents and controllers.
const removeFolder = "remove/"

// renderManifests returns the files of deploy/ by their path there: all templates with the chart's default values, and
// removeFolder. The one value that has no default is empty.
func renderManifests(c *chart.Chart) (map[string]string, error) {
	out, err := renderWith(c, nil)
	if err != nil {
		return nil, err
	}
	removal, err := renderWith(c, map[string]any{"remove": true})
	for name, text := range removal {
		if strings.HasPrefix(name, removeFolder) {
			out[name] = text
		}
	}
	return out, err
}

func renderWith(c *chart.Chart, given map[string]any) (map[string]string, error) {
	values, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "egret", Namespace: "default"}, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{LintMode: true}.Render(c, values)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, text := range rendered {
		name = strings.TrimPrefix(name, path.Join(c.Name(), "templates")+"/")
		text = strings.TrimPrefix(strings.TrimSpace(text), "---\n")
		if path.Ext(name) == ".yaml" && text != "" {
			out[name] = fmt.Sprintf(header, name) + text + "\n"
		}
	}
	return out, nil
}

// writeManifests replaces the files of deploy/, and those that no template makes any more are removed.
func writeManifests(c *chart.Chart) error {
	want, err := renderManifests(c)
	if err != nil {
		return err
	}
	have, err := readManifests()
	if err != nil {
		return err
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			if err := os.Remove(filepath.Join(manifestFolder, name)); err != nil {
				return err
			}
		}
	}
	for name, text := range want {
		if err := os.WriteFile(filepath.Join(manifestFolder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return writeSums()
}

// readManifests returns the files that are there, by their path in deploy/.
func readManifests() (map[string]string, error) {
	out := map[string]string{}
	for _, pattern := range []string{"*.yaml", "cluster/*.yaml", removeFolder + "*.yaml"} {
		files, err := filepath.Glob(filepath.Join(manifestFolder, pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(manifestFolder, f)
			if err != nil {
				return nil, err
			}
			out[name] = string(text)
		}
	}
	return out, nil
}
