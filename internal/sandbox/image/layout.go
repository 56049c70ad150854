package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// Image is what one image consists of: a name, how to run it, and the files of its only layer.
type Image struct {
	Name       string   // full reference, such as localhost/pause:1
	Entrypoint []string // first element is an absolute path; empty: the caller names the command
	Cmd        []string // arguments where a Pod gives none
	Env        []string // KEY=value
	Files      []File
}

const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// blob is a member of blobs/sha256: content, or the file that has it.
type blob struct {
	descriptor descriptor
	content    []byte
	file       *os.File // read from its start
}

// descriptor points to a blob (OCI image-spec, descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	Manifests     []descriptor `json:"manifests"`
}

type imageConfig struct {
	Architecture string     `json:"architecture"`
	OS           string     `json:"os"`
	Config       runConfig  `json:"config"`
	RootFS       rootLayers `json:"rootfs"`
}

type runConfig struct {
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	Env        []string `json:"Env,omitempty"`
}

type rootLayers struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// Write writes img as an OCI image layout tar (OCI image-spec 1.1, image-layout.md) with one uncompressed layer. The
// same img gives the same bytes: members are sorted and carry no time. It errs if a source file cannot be read.
func Write(w io.Writer, img Image) error {
	layer, err := makeLayer(img.Files)
	if err != nil {
		return fmt.Errorf("layer of %s: %w", img.Name, err)
	}
	defer layer.file.Close()
	config, err := jsonBlob(typeConfig, imageConfig{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Config:       runConfig{img.Entrypoint, img.Cmd, img.Env},
		RootFS:       rootLayers{"layers", []string{layer.descriptor.Digest}},
	})
	if err != nil {
		return err
	}
	man, err := jsonBlob(typeManifest, manifest{2, typeManifest, config.descriptor, []descriptor{layer.descriptor}})
	if err != nil {
		return err
	}
	return writeLayout(w, img.Name, man, config, layer)
}

// writeLayout writes the blobs and the two files that lead to them. The first blob is the manifest.
func writeLayout(w io.Writer, name string, blobs ...blob) error {
	named := blobs[0].descriptor
	// containerd's importer takes the image's name from this annotation.
	named.Annotations = map[string]string{"io.containerd.image.name": name}
	idx, err := json.Marshal(index{2, []descriptor{named}})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	if err := writeMember(t, "oci-layout", blob{content: []byte(`{"imageLayoutVersion":"1.0.0"}`)}); err != nil {
		return err
	}
	if err := writeMember(t, "index.json", blob{content: idx}); err != nil {
		return err
	}
	for _, b := range blobs {
		if err := writeMember(t, "blobs/sha256/"+b.descriptor.Digest[len("sha256:"):], b); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeMember(t *tar.Writer, name string, b blob) error {
	size := int64(len(b.content))
	if b.file != nil {
		size = b.descriptor.Size
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	if b.file == nil {
		_, err := t.Write(b.content)
		return err
	}
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(t, b.file)
	return err
}

func jsonBlob(mediaType string, v any) (blob, error) {
	content, err := json.Marshal(v)
	if err != nil {
		return blob{}, err
	}
	sum := sha256.Sum256(content)
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content))}
	return blob{descriptor: d, content: content}, nil
}
