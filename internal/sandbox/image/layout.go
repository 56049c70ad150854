package image

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"
)

// Image is what one image consists of: a name, how to run it, and the files of its only layer.
type Image struct {
	Name       string   // full reference, such as localhost/pause:1
	Aliases    []string // other names that it has
	Entrypoint []string // first element is an absolute path; empty: the caller names the command
	Cmd        []string // arguments where a Pod gives none
	Env        []string // KEY=value
	Labels     map[string]string
	Files      []File
}

// The members of an archive, beside the layer.
const (
	manifestFile = "manifest.json"
	configFile   = "config.json"
	layerFile    = "layer.tar"
)

// manifest is an element of manifest.json.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// imageConfig is how to run an image (OCI image-spec, config.md).
type imageConfig struct {
	Architecture string     `json:"architecture"`
	OS           string     `json:"os"`
	Config       runConfig  `json:"config"`
	RootFS       rootLayers `json:"rootfs"`
}

type runConfig struct {
	Entrypoint []string          `json:"Entrypoint,omitempty"`
	Cmd        []string          `json:"Cmd,omitempty"`
	Env        []string          `json:"Env,omitempty"`
	Labels     map[string]string `json:"Labels,omitempty"`
}

type rootLayers struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// Write writes img as `docker save` does, with one uncompressed layer: containerd, podman and skopeo read it, too. The
// same img gives the same bytes: members are sorted and carry no time. It errs if a source file cannot be read.
func Write(w io.Writer, img Image) error {
	l, err := makeLayer(img.Files)
	if err != nil {
		return fmt.Errorf("layer of %s: %w", img.Name, err)
	}
	defer l.file.Close()
	t := tar.NewWriter(w)
	for _, m := range []struct {
		name    string
		content any
	}{
		{manifestFile, []manifest{{configFile, append([]string{img.Name}, img.Aliases...), []string{layerFile}}}},
		{configFile, imageConfig{runtime.GOARCH, "linux", runConfig{img.Entrypoint, img.Cmd, img.Env, img.Labels},
			rootLayers{"layers", []string{l.digest}}}},
	} {
		text, err := json.Marshal(m.content)
		if err == nil {
			err = writeHeader(t, m.name, int64(len(text)))
		}
		if err == nil {
			_, err = t.Write(text)
		}
		if err != nil {
			return err
		}
	}
	if err := writeHeader(t, layerFile, l.size); err != nil {
		return err
	}
	if _, err := io.Copy(t, l.file); err != nil {
		return err
	}
	return t.Close()
}

func writeHeader(t *tar.Writer, name string, size int64) error {
	return t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)})
}
