// Command prepare makes what a sandbox is built from besides binaries, in the cache folder ($EGRET_CACHE, or
// /var/cache/egret):
//
//	prepare root            the Debian root folder of the nodes
//	prepare images FOLDER   the container images, from the root folder and the binaries in FOLDER
//	prepare egret FOLDER VERSION REVISION SECONDS    the product's image, from the same, into FOLDER; of the commit
//	                        REVISION, which was made SECONDS after 1970
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

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
	case len(args) == 5 && args[0] == "egret":
		seconds, err := strconv.ParseInt(args[4], 10, 64)
		if err != nil {
			return fmt.Errorf("time of the commit: %w", err)
		}
		release := image.Release{Version: args[2], Revision: args[3], Time: time.Unix(seconds, 0)}
		return image.BuildEgret(ctx, image.Product{RootDir: rootfs.Dir(), BinDir: args[1], Licence: "LICENSE",
			Release: release}, args[1], progress)
	default:
		return errors.New("usage: prepare root | prepare images FOLDER | " +
			"prepare egret FOLDER VERSION REVISION SECONDS")
	}
}
