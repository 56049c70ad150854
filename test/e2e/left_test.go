package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/egret-net/egret/internal/sandbox"
)

// nothingLeft looks for what a sandbox that was taken down may have left on this machine.
func nothingLeft(o sandbox.Options) error {
	name := regexp.QuoteMeta(o.Name)
	member := regexp.MustCompile(`^` + name + `-(cp|fabric|n\d+|ext\d+)$`)
	dir := filepath.Join(o.StateDir, o.Name)
	return errors.Join(
		noneNamed("network namespace", "/run/netns/*", member),
		noneNamed("control group", "/sys/fs/cgroup/*", member),
		noneNamed("control group", "/sys/fs/cgroup/*/*", member),
		noMounts(dir), noProcesses(dir), noFolder(dir),
	)
}

func noneNamed(what, glob string, pattern *regexp.Regexp) error {
	var errs []error
	found, err := filepath.Glob(glob)
	if err != nil {
		return err
	}
	for _, path := range found {
		if pattern.MatchString(filepath.Base(path)) {
			errs = append(errs, fmt.Errorf("down left %s %s", what, path))
		}
	}
	return errors.Join(errs...)
}

func noMounts(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), dir) {
		return fmt.Errorf("down left mounts of %s: see /proc/self/mountinfo", dir)
	}
	return nil
}

// noProcesses goes by the environment that all processes of a sandbox inherit.
func noProcesses(dir string) error {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range environments {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), dir) {
			errs = append(errs, fmt.Errorf("down left process %s", filepath.Base(filepath.Dir(file))))
		}
	}
	return errors.Join(errs...)
}

func noFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("down left folder %s", dir)
	}
	return nil
}
