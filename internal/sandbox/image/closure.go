package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// closure is the set of files of a Debian root folder that some programs need to run: the programs, the dynamic
// loader, all shared libraries, and the symbolic links that lead to each.
type closure struct {
	root  string
	libs  []string // folders the loader searches, inside root
	files map[string]File
}

// newClosure starts with the links that Debian's merged /usr puts at the top (/bin, /lib, ...).
func newClosure(root string) (*closure, error) {
	c := &closure{root: root, files: map[string]File{}}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("read the root folder (make build builds it): %w", err)
	}
	for _, e := range entries {
		if e.Type() == fs.ModeSymlink {
			if _, err := c.resolveLinks("/" + e.Name()); err != nil {
				return nil, err
			}
		}
	}
	multiarch, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range multiarch {
		c.libs = append(c.libs, strings.TrimPrefix(dir, filepath.Clean(root)))
	}
	c.libs = append(c.libs, "/usr/lib", "/usr/lib64")
	return c, nil
}

// addFile adds the file at name (absolute, inside the root folder) and everything it needs.
func (c *closure) addFile(name string) error {
	target, err := c.resolveLinks(name)
	if err != nil {
		return err
	}
	if _, done := c.files[target]; done {
		return nil
	}
	source := filepath.Join(c.root, target)
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	c.files[target] = File{Path: target, Mode: info.Mode().Perm(), Source: source}
	needed, err := neededLibraries(source)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	for _, n := range needed {
		if err := c.addLibrary(n); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return nil
}

func (c *closure) addAll(names []string) error {
	for _, name := range names {
		if err := c.addFile(name); err != nil {
			return err
		}
	}
	return nil
}

// addLibrary adds a shared library by the name it is linked by, or the dynamic loader by its path.
func (c *closure) addLibrary(name string) error {
	if path.IsAbs(name) {
		return c.addFile(name)
	}
	for _, dir := range c.libs {
		full := path.Join(dir, name)
		if _, err := os.Lstat(filepath.Join(c.root, full)); err == nil {
			return c.addFile(full)
		}
	}
	return fmt.Errorf("shared library %s is not in the root folder", name)
}

// resolveLinks follows symbolic links inside the root folder, also those of folders on the way, adds each, and returns
// the path without any.
func (c *closure) resolveLinks(name string) (string, error) {
	const tooMany = 40
	done, rest := "/", strings.Split(strings.Trim(path.Clean(name), "/"), "/")
	for links := 0; len(rest) > 0; {
		at := path.Join(done, rest[0])
		link, err := os.Readlink(filepath.Join(c.root, at))
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("%s is not in the root folder", at)
			}
			done, rest = at, rest[1:] // a file or a folder
			continue
		}
		if links++; links > tooMany {
			return "", fmt.Errorf("%s: too many symbolic links", name)
		}
		c.files[at] = File{Path: at, Link: link}
		if !path.IsAbs(link) {
			link = path.Join(done, link)
		}
		rest = append(strings.Split(strings.Trim(path.Clean(link), "/"), "/"), rest[1:]...)
		done = "/"
	}
	return done, nil
}

// neededLibraries lists the libraries and the loader that an ELF file asks for; nothing if it is no ELF file.
func neededLibraries(file string) ([]string, error) {
	f, err := elf.Open(file)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) { // EOF: shorter than an ELF header
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			loader := make([]byte, p.Filesz)
			if _, err := p.ReadAt(loader, 0); err != nil {
				return nil, err
			}
			needed = append(needed, strings.TrimRight(string(loader), "\x00"))
		}
	}
	slices.Sort(needed)
	return needed, nil
}

// listFiles returns the files in no particular order.
func (c *closure) listFiles() []File {
	files := make([]File, 0, len(c.files))
	for _, f := range c.files {
		files = append(files, f)
	}
	return files
}
