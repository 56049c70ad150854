// Command prepare makes what a sandbox is built from besides binaries: the Debian root folder and the container images,
// in the cache folder ($EGRET_CACHE, or /var/cache/egret). Its argument is the folder of the binaries.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/egret-net/egret/internal/sandbox/image"
	"github.com/egret-net/egret/internal/sandbox/rootfs"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prepare BIN-FOLDER")
		os.Exit(2)
	}
	if err := prepare(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func prepare(binDir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	progress := func(line string) { fmt.Printf("%5.0fs   %s\n", time.Since(began).Seconds(), line) }
	if err := rootfs.Ensure(ctx, rootfs.Dir(), progress); err != nil {
		return err
	}
	return image.BuildAll(ctx, rootfs.Dir(), binDir, image.Dir(), progress)
}
