package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/egret-net/egret/internal/sandbox/image"
)

// invalidSegments is a server that sends TCP segments with wrong sequence numbers; the spec about them has an image for it.
const invalidSegments = "regression-issue-74839"

// standIns are images of the nodes that can be had under a name of the suite's, by the last part of that name. The agnhost image is a small Debian
// with glibc's resolver, dig and the usual tools beside the test server, so it serves for the others, too.
func standIns() map[string]string {
	return map[string]string{
		"agnhost": image.Agnhost().Name, "glibc-dns-testing": image.Agnhost().Name, "busybox": image.Agnhost().Name,
		"pause": image.Pause().Name, invalidSegments: "localhost/" + invalidSegments + ":latest",
	}
}

// provideImages gives images of the sandbox the names that the suite knows them by, on every node.
func (s suite) provideImages(ctx context.Context) error {
	if err := s.importServer(ctx); err != nil {
		return err
	}
	list, err := exec.CommandContext(ctx, s.bin("e2e.test"), "--list-images").Output()
	if err != nil {
		return fmt.Errorf("e2e.test --list-images: %w", err)
	}
	named := 0
	for _, name := range strings.Fields(string(list)) {
		last, _, _ := strings.Cut(path.Base(name), ":")
		have, ok := standIns()[last]
		if !ok {
			continue
		}
		if err := s.onNodes(ctx, "images", "tag", "--force", have, name); err != nil {
			return err
		}
		named++
	}
	if named == 0 {
		return fmt.Errorf("e2e.test names none of agnhost, busybox, pause: %s", list)
	}
	return nil
}

// importServer makes the image of invalidSegments and loads it on every node, which see the folder of the binaries.
func (s suite) importServer(ctx context.Context) error {
	file, err := os.Create(s.bin(invalidSegments + ".tar"))
	if err != nil {
		return err
	}
	defer file.Close()
	program := "/" + invalidSegments
	err = image.Write(file, image.Image{
		Name: standIns()[invalidSegments], Entrypoint: []string{program},
		Files: []image.File{{Path: program, Mode: 0o755, Source: s.bin(invalidSegments)}},
	})
	if err != nil {
		return err
	}
	return s.onNodes(ctx, "images", "import", filepath.Join("/opt/egret/bin", filepath.Base(file.Name())))
}

// onNodes runs ctr(8) on every node.
func (s suite) onNodes(ctx context.Context, args ...string) error {
	for _, n := range s.cluster.Nodes() {
		if _, err := s.cluster.ExecIn(ctx, n.Name, append([]string{"ctr", "--namespace", "k8s.io"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}
