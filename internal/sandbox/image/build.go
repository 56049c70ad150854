package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/egret-net/egret/internal/sandbox/rootfs"
)

// Ref names an image and the file it is in.
type Ref struct {
	Name string // as Pods write it in spec.containers[].image
	File string // base name inside the output folder
}

// Pause names the image that holds a Pod's namespaces.
func Pause() Ref { return Ref{"localhost/pause:1", "pause.tar"} }

// Agnhost names the Kubernetes test server, with a shell and network tools beside it.
func Agnhost() Ref { return Ref{"localhost/agnhost:latest", "agnhost.tar"} }

// CoreDNS names the cluster's DNS server.
func CoreDNS() Ref { return Ref{"localhost/coredns:latest", "coredns.tar"} }

// MetalLBController names the program that gives Services of type LoadBalancer their addresses.
func MetalLBController() Ref {
	return Ref{"localhost/metallb-controller:latest", "metallb-controller.tar"}
}

// MetalLBSpeaker names the program that announces these addresses, one on each node.
func MetalLBSpeaker() Ref { return Ref{"localhost/metallb-speaker:latest", "metallb-speaker.tar"} }

// Egret names the product's image as deploy/cluster does, whatever its version: Egret's programs, OVS, OVN and what
// they call.
func Egret() Ref { return Ref{"localhost/egret:v0.1.0", "egret-image.tar"} }

// All lists the images that BuildAll makes.
func All() []Ref {
	return []Ref{Pause(), Agnhost(), CoreDNS(), MetalLBController(), MetalLBSpeaker()}
}

// Dir is where images are kept in the cache.
func Dir() string { return filepath.Join(rootfs.CacheDir(), "images") }

// BuildAll writes the image files of All into outDir. An image whose input did not change is left as it is; one that is
// written appears complete or not at all. rootDir is the folder of rootfs.Ensure, binDir holds the static binaries
// pause, agnhost, coredns, metallb-controller and metallb-speaker. progress gets one line for each image written. It
// errs if an input is missing.
func BuildAll(ctx context.Context, rootDir, binDir, outDir string, progress func(string)) error {
	if err := os.MkdirAll(outDir, 0o755); err != nil {
		return fmt.Errorf("make the image folder: %w", err)
	}
	agnhost, err := AgnhostImage(rootDir, binDir)
	if err != nil {
		return fmt.Errorf("%s: %w", Agnhost().Name, err)
	}
	bin := func(name string) string { return filepath.Join(binDir, name) }
	images := map[Ref]Image{
		Pause():             pauseImage(binDir),
		Agnhost():           agnhost,
		CoreDNS():           staticImage(CoreDNS(), "/coredns", bin("coredns")),
		MetalLBController(): staticImage(MetalLBController(), "/controller", bin("metallb-controller")),
		MetalLBSpeaker():    staticImage(MetalLBSpeaker(), "/speaker", bin("metallb-speaker")),
	}
	for _, ref := range All() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := buildOne(filepath.Join(outDir, ref.File), images[ref], progress); err != nil {
			return fmt.Errorf("%s: %w", ref.Name, err)
		}
	}
	return nil
}

// BuildEgret writes the product's image into outDir, as BuildAll does.
func BuildEgret(ctx context.Context, p Product, outDir string, progress func(string)) error {
	img, err := egretImage(ctx, p)
	if err == nil {
		err = buildOne(filepath.Join(outDir, Egret().File), img, progress)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", Egret().Name, err)
	}
	return nil
}

// buildOne writes img to file unless file was made of the same input.
func buildOne(file string, img Image, progress func(string)) error {
	want, err := inputHash(img)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: run make build", err)
	}
	if err != nil {
		return err
	}
	stampFile := file + ".input"
	if have, err := os.ReadFile(stampFile); err == nil && string(have) == want && fileExists(file) {
		return nil
	}
	// Gone before the file changes: a stamp beside a file of other input must never be seen.
	if err := os.Remove(stampFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	size, err := replaceImage(file, img)
	if err != nil {
		return err
	}
	progress(fmt.Sprintf("%s (%d MB)", img.Name, size>>20))
	return os.WriteFile(stampFile, []byte(want), 0o644)
}

// replaceImage writes img next to file and renames it into place; it returns the size in bytes.
func replaceImage(file string, img Image) (int64, error) {
	out, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".new-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	if err := Write(out, img); err != nil {
		return 0, err
	}
	info, err := out.Stat()
	if err != nil {
		return 0, err
	}
	if err := out.Chmod(0o644); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(out.Name(), file)
}

// inputHash is the SHA-256 of everything an image is made of, the content of its source files included.
func inputHash(img Image) (string, error) {
	img.Files = withParentFolders(img.Files)
	for i, f := range img.Files {
		if f.Source == "" {
			continue
		}
		content, err := fileHash(f.Source)
		if err != nil {
			return "", err
		}
		img.Files[i].Source = content
	}
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(img); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func fileHash(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func fileExists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
