package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/egret-net/egret/"
)

// file is one file with what it imports; folder is relative to the module, and so are imports of the module's own
// packages.
type file struct {
	path, folder string
	imports      []string
}

// files are all Go files of this module but tests.
func files(t *testing.T) []file {
	t.Helper()
	var out []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipped(path, d.Name())
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			f, err := read(path)
			out = append(out, f)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 100 {
		t.Fatalf("found %d files only: is %s the module's root?", len(out), root)
	}
	return out
}

// skipped are folders without source of this module: sandbox has a module of its own.
func skipped(path, name string) error {
	if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" ||
		path == filepath.Join(root, "sandbox")) {
		return fs.SkipDir
	}
	return nil
}

func read(path string) (file, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return file{}, err
	}
	rel, err := filepath.Rel(root, path)
	f := file{path: rel, folder: filepath.Dir(rel)}
	for _, i := range parsed.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return file{}, err
		}
		f.imports = append(f.imports, strings.TrimPrefix(name, module))
	}
	return f, err
}

// under says whether a folder is one of these, or in one.
func under(folder string, roots ...string) bool {
	for _, r := range roots {
		if folder == r || strings.HasPrefix(folder, r+"/") {
			return true
		}
	}
	return false
}

// own says that an import is of this module, and standard that it is of Go's library.
func own(name string) bool {
	return under(name, "api", "cmd", "deploy", "hack", "internal", "test")
}

func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !own(name) && !strings.Contains(first, ".")
}
