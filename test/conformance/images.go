package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/egret-net/egret/internal/sandbox/image"
)

const (
	// invalidSegments is a server that sends TCP segments with wrong sequence numbers; the spec about them has an image
	// for it.
	invalidSegments = "regression-issue-74839"
	testServer      = "conformance-agnhost"
)

// standIns are images of the nodes that can be had under a name of the suite's, by the last part of that name. The test
// server's is a small Debian with glibc's resolver, dig and the usual tools beside it, so it serves for others, too.
func standIns() map[string]string {
	return map[string]string{
		"agnhost": local(testServer), "glibc-dns-testing": local(testServer), "busybox": local(testServer),
		"pause": image.Pause().Name, invalidSegments: local(invalidSegments),
	}
}

func local(name string) string { return "localhost/" + name + ":latest" }

// provideImages gives images of the sandbox the names that the suite knows them by, on every node.
func (s suite) provideImages(ctx context.Context) error {
	images, err := s.ownImages(ctx)
	if err != nil {
		return err
	}
	for _, i := range images {
		if err := s.importImage(ctx, i); err != nil {
			return fmt.Errorf("%s: %w", i.Name, err)
		}
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

// ownImages are those that only the suite needs: the test server with what its image has in Kubernetes' build and the
// sandbox does without, a DNS server and a certificate, BusyBox' wget, and the server of invalid segments.
func (s suite) ownImages(ctx context.Context) ([]image.Image, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-C", "sandbox/controlplane", "-m", "-f", "{{.Dir}}",
		"k8s.io/kubernetes").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module k8s.io/kubernetes (run this from the repository's top folder): %w", err)
	}
	certificates := filepath.Join(strings.TrimSpace(string(module)), "test/images/agnhost/porter")
	server, err := image.AgnhostImage(filepath.Join(s.sandbox.CacheDir, "root"), s.sandbox.BinDir,
		image.File{Path: "/coredns", Mode: 0o755, Source: s.bin("coredns")},
		image.File{Path: "/usr/bin/wget", Mode: 0o755, Source: filepath.Join("test", "conformance", "wget")},
		image.File{Path: "/localhost.crt", Mode: 0o644, Source: filepath.Join(certificates, "localhost.crt")},
		image.File{Path: "/localhost.key", Mode: 0o644, Source: filepath.Join(certificates, "localhost.key")})
	if err != nil {
		return nil, err
	}
	server.Name = local(testServer)
	program := "/" + invalidSegments
	return []image.Image{server, {
		Name: local(invalidSegments), Entrypoint: []string{program},
		Files: []image.File{{Path: program, Mode: 0o755, Source: s.bin(invalidSegments)}},
	}}, nil
}

// importImage loads an image on every node.
func (s suite) importImage(ctx context.Context, i image.Image) error {
	file, err := os.CreateTemp("", "image-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := image.Write(file, i); err != nil {
		return err
	}
	return s.cluster.LoadImages(ctx, file.Name(), io.Discard)
}

// onNodes runs ctr(8) on every node.
func (s suite) onNodes(ctx context.Context, args ...string) error {
	for _, n := range s.cluster.Nodes() {
		if _, err := s.cluster.ExecIn(ctx, n.Name,
			append([]string{"ctr", "--namespace", "k8s.io"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}
