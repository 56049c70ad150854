package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// kernel is an unpacked kernel package.
type kernel struct {
	version string // "6.1.0-56-amd64"
	image   string // the file that boots
	modules string // lib/modules/<version>, with modules.dep
}

// ensureKernel fetches and unpacks the newest kernel that the machine's apt knows into dir, unless one is there: any
// will do, and a test should not wait for the network because of a security update. Remove dir to get a new one.
func ensureKernel(ctx context.Context, dir string) (kernel, error) {
	if k, err := kernelIn(dir); err == nil {
		return k, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return kernel{}, err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "kernel.partial")
	if err != nil {
		return kernel{}, err
	}
	defer os.RemoveAll(partial)
	if err := unpackKernel(ctx, partial); err != nil {
		return kernel{}, err
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return kernel{}, err
	}
	if err := os.Rename(partial, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return kernel{}, err
	}
	return kernelIn(dir)
}

func unpackKernel(ctx context.Context, dir string) error {
	version, err := newestKernel(ctx)
	if err != nil {
		return err
	}
	fmt.Println("fetching the kernel package linux-image-" + version)
	if err := command(ctx, dir, "apt-get", "download", "linux-image-"+version); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download left %v", debs)
	}
	if err := command(ctx, dir, "dpkg-deb", "-x", debs[0], "."); err != nil {
		return err
	}
	if err := os.Remove(debs[0]); err != nil {
		return err
	}
	return command(ctx, dir, "depmod", "-b", dir, version) // as the package's own script does
}

var kernelPackage = regexp.MustCompile(`linux-image-(\d\S*-amd64)`)

// newestKernel is what Debian's package linux-image-amd64 depends on. The smaller linux-image-cloud-amd64 lacks the 9p
// file system.
func newestKernel(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-cache", "show", "--no-all-versions", "linux-image-amd64").Output()
	found := kernelPackage.FindSubmatch(out)
	if err != nil || found == nil {
		return "", fmt.Errorf("apt knows no package linux-image-amd64 (%v): run apt-get update, on Debian for amd64",
			err)
	}
	return string(found[1]), nil
}

func kernelIn(dir string) (kernel, error) {
	images, err := filepath.Glob(filepath.Join(dir, "boot/vmlinuz-*"))
	if err != nil {
		return kernel{}, err
	}
	if len(images) != 1 {
		return kernel{}, fmt.Errorf("%s: %d kernels in boot, want 1", dir, len(images))
	}
	version := filepath.Base(images[0])[len("vmlinuz-"):]
	k := kernel{version: version, image: images[0], modules: filepath.Join(dir, "lib/modules", version)}
	if _, err := os.Stat(filepath.Join(k.modules, "modules.dep")); err != nil {
		return kernel{}, err
	}
	return k, nil
}

// command runs to its end in dir; its error has the output.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
