package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sample(t *testing.T) Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	writeTest(t, program, "machine code")
	return Image{
		Name:       "localhost/sample:1",
		Entrypoint: []string{"/usr/bin/program"},
		Cmd:        []string{"serve"},
		Env:        []string{"A=b"},
		Files: []File{
			{Path: "/usr/bin/program", Mode: 0o755, Source: program},
			{Path: "/bin", Link: "usr/bin"},
			{Path: "/etc/passwd", Mode: 0o644, Content: "root:x:0:0::/:/bin/sh\n"},
			{Path: "/tmp", Mode: 0o777 | fs.ModeSticky},
		},
	}
}

// An importer finds the configuration and the layer by what manifest.json says.
func TestArchiveLeadsFromTheNameToTheLayer(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, sample(t)); err != nil {
		t.Fatal(err)
	}
	archive := members(t, out.Bytes())
	man := decode[[]manifest](t, archive["manifest.json"].content)[0]
	if !slices.Equal(man.RepoTags, []string{"localhost/sample:1"}) || len(man.Layers) != 1 {
		t.Errorf("manifest %+v", man)
	}
	config := decode[imageConfig](t, archive[man.Config].content)
	run := config.Config
	if !slices.Equal(run.Entrypoint, []string{"/usr/bin/program"}) || !slices.Equal(run.Cmd, []string{"serve"}) ||
		!slices.Equal(run.Env, []string{"A=b"}) {
		t.Errorf("run config %+v", run)
	}
	content := archive[man.Layers[0]].content
	sum := sha256.Sum256(content)
	if want := []string{"sha256:" + hex.EncodeToString(sum[:])}; !slices.Equal(config.RootFS.DiffIDs, want) {
		t.Errorf("diff ids %v, want the layer's digest %v", config.RootFS.DiffIDs, want)
	}
	checkLayer(t, members(t, content))
}

func checkLayer(t *testing.T, layer map[string]member) {
	t.Helper()
	if f := layer["usr/bin/program"]; string(f.content) != "machine code" || f.Mode != 0o755 {
		t.Errorf("program %q %o", f.content, f.Mode)
	}
	if f := layer["bin"]; f.Typeflag != tar.TypeSymlink || f.Linkname != "usr/bin" {
		t.Errorf("link %+v", f.Header)
	}
	if f := layer["tmp/"]; f.Typeflag != tar.TypeDir || f.Mode != 0o1777 {
		t.Errorf("tmp %+v", f.Header)
	}
	for _, dir := range []string{"usr/", "usr/bin/", "etc/"} {
		if f, ok := layer[dir]; !ok || f.Mode != 0o755 {
			t.Errorf("parent folder %s: %+v", dir, f.Header)
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	img := sample(t)
	var one, two bytes.Buffer
	if err := Write(&one, img); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(img.Files)
	if err := Write(&two, img); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the order of the files shows in the image")
	}
}

func TestBuildOneWritesOnlyWhatChanged(t *testing.T) {
	img, file := sample(t), filepath.Join(t.TempDir(), "sample.tar")
	written := 0
	build := func() {
		t.Helper()
		if err := buildOne(file, img, func(string) { written++ }); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name   string
		change func()
		want   int
	}{
		{"first", func() {}, 1},
		{"nothing changed", func() {}, 1},
		{"program changed", func() { writeTest(t, img.Files[0].Source, "other code") }, 2},
		{"entrypoint changed", func() { img.Entrypoint = []string{"/bin/program"} }, 3},
		{"file lost", func() { os.Remove(file) }, 4},
	} {
		step.change()
		if build(); written != step.want {
			t.Errorf("%s: written %d times, want %d", step.name, written, step.want)
		}
	}
}

func TestMissingBinaryIsNamed(t *testing.T) {
	root, bin := debian(t), t.TempDir()
	err := BuildAll(context.Background(), root, bin, t.TempDir(), func(string) {})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("have %v", err)
	}
	for _, want := range []string{filepath.Join(bin, "pause"), "make build"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// debian makes a folder with the layout of a merged /usr and every tool as a plain file.
func debian(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range toolPaths() {
		writeTest(t, filepath.Join(root, name), "#!/bin/sh\n")
	}
	symlink(t, "usr/bin", filepath.Join(root, "bin"))
	return root
}

func TestResolveAddsEveryLinkOnTheWay(t *testing.T) {
	root := debian(t)
	writeTest(t, filepath.Join(root, "usr/bin/nc.openbsd"), "")
	if err := os.Remove(filepath.Join(root, "usr/bin/nc")); err != nil {
		t.Fatal(err)
	}
	symlink(t, "/etc/alternatives/nc", filepath.Join(root, "usr/bin/nc"))
	symlink(t, "/bin/nc.openbsd", filepath.Join(root, "etc/alternatives/nc"))
	c, err := newClosure(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.addFile("/usr/bin/nc"); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]string{
		"/bin": "usr/bin", "/usr/bin/nc": "/etc/alternatives/nc", "/etc/alternatives/nc": "/bin/nc.openbsd",
	} {
		if have := c.files[name].Link; have != link {
			t.Errorf("%s leads to %q, want %q", name, have, link)
		}
	}
	if c.files["/usr/bin/nc.openbsd"].Source == "" {
		t.Error("the program itself is missing")
	}
}

func TestLinkLoopIsAnError(t *testing.T) {
	root := debian(t)
	symlink(t, "b", filepath.Join(root, "a"))
	symlink(t, "a", filepath.Join(root, "b"))
	if _, err := newClosure(root); err == nil {
		t.Error("a loop of links was followed")
	}
}

type member struct {
	tar.Header
	content []byte
}

func members(t *testing.T, archive []byte) map[string]member {
	t.Helper()
	found := map[string]member{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = member{*h, content}
	}
}

func decode[T any](t *testing.T, content []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func symlink(t *testing.T, target, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		t.Fatal(err)
	}
}

func writeTest(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}
