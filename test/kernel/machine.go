package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/egret-net/egret/test/kernel/boot"
)

// suite is a package, and which of its tests run.
type suite struct{ Package, Run string }

// machine is one virtual machine, from its files to its end.
type machine struct {
	dir    string // bin, the initial root folder, and what the machine leaves
	kernel kernel
	cache  string
	out    io.Writer
}

func (m machine) path(name string) string { return filepath.Join(m.dir, name) }

// share is the folder that the machine sees as boot.Share.
func (m machine) share() string { return m.path("share") }

// fill builds the programs and tests, and writes what the machine boots from.
func (m machine) fill(ctx context.Context, suites []suite) error {
	for _, dir := range []string{"share/bin", "share/tests"} {
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			return err
		}
	}
	build := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", m.path("share/bin") + "/", "./cmd/egret-sandbox",
		"./cmd/egret-node", "./cmd/egret-cni"}
	if err := goTool(ctx, build...); err != nil {
		return err
	}
	if err := goTool(ctx, "build", "-trimpath", "-ldflags", "-s -w", "-o", m.path("init"),
		"./test/kernel/init"); err != nil {
		return err
	}
	orders := boot.Orders{KernelVersion: m.kernel.version}
	for i, s := range suites {
		name := fmt.Sprintf("%d.test", i)
		if err := goTool(ctx, "test", "-trimpath", "-c", "-o", m.path("share/tests/"+name), s.Package); err != nil {
			return err
		}
		orders.Tests = append(orders.Tests, boot.Test{Package: s.Package, File: name, Run: s.Run})
	}
	if err := m.writeOrders(orders); err != nil {
		return err
	}
	return m.writeInitramfs()
}

func (m machine) writeOrders(o boot.Orders) error {
	content, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.share(), boot.OrdersFile), content, 0o644)
}

// writeInitramfs packs the first program and the modules without which it cannot reach the shared folders.
func (m machine) writeInitramfs() error {
	files, err := loadOrder(m.kernel, "virtio_pci", "9pnet_virtio", "9p", "overlay")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	a := &archive{w: &b}
	for _, dir := range boot.Folders() {
		a.folder(dir)
	}
	program, err := os.ReadFile(m.path("init"))
	if err != nil {
		return err
	}
	a.file("init", program)
	for i, f := range files {
		content, err := os.ReadFile(filepath.Join(m.kernel.modules, f))
		if err != nil {
			return err
		}
		a.file(fmt.Sprintf("%s/%02d-%s", boot.Modules, i, filepath.Base(f)), content)
	}
	if err := a.close(); err != nil {
		return err
	}
	return os.WriteFile(m.path("initramfs"), b.Bytes(), 0o644)
}

// goTool runs go without cgo: the programs run with the C library of another Debian.
func goTool(ctx context.Context, args ...string) error {
	return command(ctx, "", "env", append([]string{"CGO_ENABLED=0", "go"}, args...)...)
}
