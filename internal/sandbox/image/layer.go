package image

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// File is one member of a layer: a copy of Source, a symbolic link if Link is set, Content if that is set, and a folder
// if none is. Folders on the way need not be listed; they get mode 0755.
type File struct {
	Path    string // absolute, inside the image
	Mode    fs.FileMode
	Source  string // on this machine
	Link    string
	Content string
}

// layer is a tar in a file that has no name, read from its start.
type layer struct {
	file   *os.File
	digest string
	size   int64
}

// makeLayer writes the files as a tar, sorted and with the folders above them.
func makeLayer(files []File) (l layer, err error) {
	if l.file, err = os.CreateTemp("", "egret-layer-*"); err != nil {
		return l, err
	}
	os.Remove(l.file.Name())
	sum := sha256.New()
	t := tar.NewWriter(io.MultiWriter(l.file, sum))
	for _, f := range withParentFolders(files) {
		if err = writeFile(t, f); err != nil {
			l.file.Close()
			return l, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	err = t.Close()
	if err == nil {
		l.size, err = l.file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = l.file.Seek(0, io.SeekStart)
	}
	l.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return l, err
}

func writeFile(t *tar.Writer, f File) error {
	h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: tarMode(f.Mode), ModTime: time.Unix(0, 0)}
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	case f.Source != "":
		return copyFile(t, h, f.Source)
	case f.Content != "":
		h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Content))
	default:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.WriteString(t, f.Content)
	return err
}

func copyFile(t *tar.Writer, h *tar.Header, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(t, in)
	return err
}

// tarMode keeps the sticky bit, the only special one an image here has.
func tarMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	if m&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}

// withParentFolders sorts files by path, adds missing parent folders, and keeps the first of those with the same path.
func withParentFolders(files []File) []File {
	seen := map[string]bool{"/": true}
	all := make([]File, 0, len(files))
	for _, f := range files {
		if !seen[f.Path] {
			seen[f.Path] = true
			all = append(all, f)
		}
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, File{Path: dir, Mode: 0o755})
		}
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return all
}
