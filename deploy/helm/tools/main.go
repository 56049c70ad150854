package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Folders, as seen from this one, in which the program is run.
const (
	chartFolder    = "../egret"
	manifestFolder = "../.."
	sumsFile       = "../rendered.sha256"
)

func main() {
	folder := flag.String("package", "", "`folder` that the packaged chart is written into")
	version := flag.String("version", "", "the package's `version`, which its image has, too; else those of Chart.yaml")
	flag.Parse()
	if err := run(*folder, *version); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(folder, version string) error {
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		return err
	}
	if err := writeManifests(c); err != nil {
		return err
	}
	if folder == "" {
		return nil
	}
	return writePackage(c, folder, version)
}

// writePackage writes the chart into folder. It names the image of its version. The same chart with the same version
// makes the same bytes.
func writePackage(c *chart.Chart, folder, version string) error {
	if version != "" {
		c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(version, "v"), version
	}
	epoch := time.Unix(0, 0)
	c.ModTime, c.SchemaModTime = epoch, epoch
	for _, files := range [][]*common.File{c.Raw, c.Templates, c.Files} {
		for _, f := range files {
			f.ModTime = epoch
		}
	}
	file, err := chartutil.Save(c, folder)
	if err == nil {
		fmt.Println(file)
	}
	return err
}
