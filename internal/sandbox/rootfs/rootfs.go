package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const stampFile = "etc/egret-root.stamp"

// CacheDir is where built folders and images are kept: $EGRET_CACHE, or /var/cache/egret.
func CacheDir() string {
	if dir := os.Getenv("EGRET_CACHE"); dir != "" {
		return dir
	}
	return "/var/cache/egret"
}

// Dir is the root folder's place in the cache.
func Dir() string { return filepath.Join(CacheDir(), "root") }

// Ensure makes dir the root folder: it returns at once when dir was made from the present package list, and otherwise
// builds it next to dir and renames it into place. Concurrent callers wait for each other. progress gets short lines
// while the build runs (minutes). Errors: not root, debootstrap or a Debian mirror missing, or debootstrap's own.
func Ensure(ctx context.Context, dir string, progress func(string)) error {
	if isCurrent(dir) {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("building the root folder needs root: run this command as root")
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w", err)
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if isCurrent(dir) { // built by whoever held the lock
		return nil
	}
	return buildRoot(ctx, dir, progress)
}

// buildRoot makes the folder under a temporary name on the same file system and swaps it in.
func buildRoot(ctx context.Context, dir string, progress func(string)) error {
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("remove what an interrupted build left: %w", err)
	}
	defer os.RemoveAll(partial)
	src, err := findSource(ctx)
	if err != nil {
		return err
	}
	if err := runDebootstrap(ctx, partial, src, progress); err != nil {
		return err
	}
	if err := finishRoot(partial); err != nil {
		return fmt.Errorf("finish the root folder: %w", err)
	}
	return swapRoot(partial, dir)
}

// finishRoot removes what belongs to the building machine and stamps the folder.
func finishRoot(dir string) error {
	debs, err := filepath.Glob(filepath.Join(dir, "var/cache/apt/archives/*.deb"))
	if err != nil {
		return err
	}
	for _, f := range debs {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"etc/resolv.conf": "",
		"etc/hostname":    "localhost\n",
		stampFile:         recipeStamp() + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// swapRoot replaces dir by partial. There is a moment without dir, never one with half of it.
func swapRoot(partial, dir string) error {
	old := dir + ".old"
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("remove an outdated root folder: %w", err)
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("move the outdated root folder away: %w", err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return fmt.Errorf("move the new root folder into place: %w", err)
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("remove the outdated root folder: %w", err)
	}
	return nil
}

func isCurrent(dir string) bool {
	have, err := os.ReadFile(filepath.Join(dir, stampFile))
	return err == nil && strings.TrimSpace(string(have)) == recipeStamp()
}

// lockFile takes an exclusive lock on file that the kernel drops when the process ends.
func lockFile(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the build lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", file, err)
	}
	return func() { f.Close() }, nil
}
