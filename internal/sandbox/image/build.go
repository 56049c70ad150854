package image

import (
	"context"
	"errors"
)

// Ref names an image and the file it is in.
type Ref struct {
	Name string // as Pods write it in spec.containers[].image
	File string // base name inside the output folder
}

// Pause is the sandbox container, Agnhost the Kubernetes test server with a shell and network tools, CoreDNS the
// cluster's DNS server.
func Pause() Ref   { return Ref{"localhost/pause:1", "pause.tar"} }
func Agnhost() Ref { return Ref{"localhost/agnhost:latest", "agnhost.tar"} }
func CoreDNS() Ref { return Ref{"localhost/coredns:latest", "coredns.tar"} }

// All lists the images that BuildAll makes.
func All() []Ref { return []Ref{Pause(), Agnhost(), CoreDNS()} }

// BuildAll writes the image files of All into outDir. An image whose input did not change is left as it is.
// rootDir is the folder of rootfs.Ensure, binDir holds the binaries pause, agnhost and coredns.
func BuildAll(ctx context.Context, rootDir, binDir, outDir string, progress func(string)) error {
	return errors.New("not written yet")
}
