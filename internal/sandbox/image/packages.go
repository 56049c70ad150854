package image

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const dpkgFolder = "/var/lib/dpkg"

// debianPackage is a package that dpkg has installed: its stanza in the file status, and the fields that an SBOM needs.
type debianPackage struct{ stanza, name, version, architecture string }

// installed is what dpkg knows of a root folder.
type installed struct {
	packages map[string]debianPackage // by name
	owners   map[string]string        // name of the package by path of the file
}

func readInstalled(root string) (installed, error) {
	i := installed{map[string]debianPackage{}, map[string]string{}}
	status, err := os.ReadFile(filepath.Join(root, dpkgFolder, "status"))
	if err != nil {
		return i, err
	}
	for stanza := range strings.SplitSeq(strings.TrimSpace(string(status)), "\n\n") {
		p := parseStanza(stanza)
		i.packages[p.name] = p
	}
	lists, err := filepath.Glob(filepath.Join(root, dpkgFolder, "info", "*.list"))
	if err != nil {
		return i, err
	}
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			return i, err
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(list), ".list"), ":") // libc6:amd64
		for line := range strings.Lines(string(content)) {
			i.owners[strings.TrimSuffix(line, "\n")] = name
		}
	}
	return i, nil
}

func parseStanza(stanza string) debianPackage {
	p := debianPackage{stanza: stanza}
	for line := range strings.SplitSeq(stanza, "\n") {
		switch key, value, _ := strings.Cut(line, ": "); key {
		case "Package":
			p.name = value
		case "Version":
			p.version = value
		case "Architecture":
			p.architecture = value
		}
	}
	return p
}

// owningFiles returns the packages that these files are from, by name. Links that dpkg does not know are from none of
// them: those of alternatives and of the merged /usr.
func (i installed) owningFiles(files map[string]File) ([]debianPackage, error) {
	var names []string
	for path, f := range files {
		name, known := i.owners[path]
		switch {
		case known:
			names = append(names, name)
		case f.Source != "" && !strings.HasPrefix(path, "/etc/"):
			return nil, fmt.Errorf("%s is from no Debian package", path)
		}
	}
	slices.Sort(names)
	var owning []debianPackage
	for _, name := range slices.Compact(names) {
		p, ok := i.packages[name]
		if !ok {
			return nil, fmt.Errorf("package %s has files, and dpkg's status does not have it", name)
		}
		owning = append(owning, p)
	}
	return owning, nil
}

// addOrigin adds what says where the files are from: os-release, the licences of the packages that they are from, and
// the texts that licences name. It returns the packages.
func (c *closure) addOrigin() ([]debianPackage, error) {
	known, err := readInstalled(c.root)
	if err != nil {
		return nil, fmt.Errorf("read the packages of the root folder: %w", err)
	}
	if err := c.addFile("/etc/os-release"); err != nil {
		return nil, err
	}
	if err := c.addFolder("/usr/share/common-licenses"); err != nil {
		return nil, err
	}
	packages, err := known.owningFiles(c.files)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		if err := c.addFile("/usr/share/doc/" + p.name + "/copyright"); err != nil {
			return nil, err
		}
	}
	return known.owningFiles(c.files) // some have their licence in another package
}

// dpkgFiles are what dpkg, and programs that look for vulnerable packages, read.
func dpkgFiles(packages []debianPackage) []File {
	var status strings.Builder
	for _, p := range packages {
		status.WriteString(p.stanza + "\n\n")
	}
	return []File{{Path: dpkgFolder + "/status", Mode: 0o644, Content: status.String()}}
}
