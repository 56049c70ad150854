package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const docFolder = "/usr/share/doc/egret"

// goLicences returns the licences of the modules among components, from the module cache. Go has its own in GOROOT.
func goLicences(ctx context.Context, components []component) ([]File, error) {
	args := []string{"mod", "download", "-json"}
	for _, c := range components {
		if c.name != "stdlib" {
			args = append(args, c.name+"@"+c.version)
		}
	}
	var files []File
	if root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output(); err != nil {
		return nil, fmt.Errorf("ask for Go's folder: %w", err)
	} else if files, err = licencesIn(strings.TrimSpace(string(root)), "go"); err != nil {
		return nil, err
	}
	if len(args) == 3 {
		return files, nil
	}
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("find the modules' folders: %w\n%s", err, out)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		own, err := licencesIn(m.Dir, m.Path)
		if err != nil {
			return nil, err
		}
		files = append(files, own...)
	}
}

// licencesIn returns the licence files of a module, which lie in its top folder.
func licencesIn(dir, module string) (files []File, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") &&
			!strings.HasPrefix(name, "NOTICE") {
			continue
		}
		files = append(files, File{Path: docFolder + "/licences/" + module + "/" + e.Name(), Mode: 0o644,
			Source: filepath.Join(dir, e.Name())})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("module %s has no licence in %s", module, dir)
	}
	return files, nil
}
