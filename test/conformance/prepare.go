package main

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox/image"
)

// standIns are the sandbox's images that can be had under a name of the suite's, by the last part of that name. The agnhost image is a small Debian with
// glibc's resolver, dig and the usual tools beside the test server, so it serves for the others, too.
func standIns() map[string]image.Ref {
	return map[string]image.Ref{
		"agnhost": image.Agnhost(), "glibc-dns-testing": image.Agnhost(), "busybox": image.Agnhost(), "pause": image.Pause(),
	}
}

// nameImages gives images of the sandbox the names that the suite knows them by, on every node.
func (s suite) nameImages(ctx context.Context) error {
	list, err := exec.CommandContext(ctx, s.bin("e2e.test"), "--list-images").Output()
	if err != nil {
		return fmt.Errorf("e2e.test --list-images: %w", err)
	}
	named := 0
	for _, name := range strings.Fields(string(list)) {
		last, _, _ := strings.Cut(path.Base(name), ":")
		ref, ok := standIns()[last]
		if !ok {
			continue
		}
		for _, n := range s.cluster.Nodes() {
			if _, err := s.cluster.ExecIn(ctx, n.Name, "ctr", "--namespace", "k8s.io", "images", "tag", "--force", ref.Name, name); err != nil {
				return err
			}
		}
		named++
	}
	if named == 0 {
		return fmt.Errorf("e2e.test names none of agnhost, busybox, pause: %s", list)
	}
	return nil
}

// spreadZones puts every node into a zone of its own, as specs about topology want.
func (s suite) spreadZones(ctx context.Context) error {
	client, err := s.cluster.Client()
	if err != nil {
		return err
	}
	for i, n := range s.cluster.Nodes() {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"zone-%d"}}}`, i+1)
		if _, err := client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
