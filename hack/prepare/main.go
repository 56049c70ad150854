// Command prepare makes what a sandbox is built from besides binaries, in the cache folder ($EGRET_CACHE, or
// /var/cache/egret):
//
//	prepare root            the Debian root folder of the nodes
//	prepare images FOLDER   the container images, from the root folder and the binaries in FOLDER
//	prepare egret FOLDER    the product's image, from the same, into FOLDER
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/egret-net/egret/internal/sandbox/image"
	"github.com/egret-net/egret/internal/sandbox/rootfs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := prepare(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func prepare(ctx context.Context, args []string) error {
	progress := func(line string) { fmt.Println(line) }
	switch {
	case len(args) == 1 && args[0] == "root":
		return rootfs.Ensure(ctx, rootfs.Dir(), progress)
	case len(args) == 2 && args[0] == "images":
		return image.BuildAll(ctx, rootfs.Dir(), args[1], image.Dir(), progress)
	case len(args) == 2 && args[0] == "egret":
		return image.BuildEgret(rootfs.Dir(), args[1], args[1], progress)
	default:
		return errors.New("usage: prepare root | prepare images FOLDER | prepare egret FOLDER")
	}
}
