package image

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Everything that deploy/cluster calls is in the image: the programs, iptables' modules, and the links that lead to
// each.
func TestEgretImageHasWhatItsContainersCall(t *testing.T) {
	layer, config := buildEgret(t, product(t))
	if len(config.Config.Entrypoint) > 0 {
		t.Errorf("entrypoint %v", config.Config.Entrypoint)
	}
	for _, name := range []string{"/usr/local/bin/egret-cni", "/usr/sbin/ovs-vswitchd", "/usr/bin/ovn-controller",
		"/usr/sbin/nft", "/usr/lib/cni/portmap",
		"/usr/lib/x86_64-linux-gnu/xtables/libxt_comment.so", "/var/run", "/var/log/openvswitch/", "/bin"} {
		if _, ok := layer[strings.TrimPrefix(name, "/")]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestEgretImageSaysWhereItIsFrom: a program that looks for vulnerable packages finds distribution, packages and
// modules, and a lawyer all licences.
func TestEgretImageSaysWhereItIsFrom(t *testing.T) {
	layer, config := buildEgret(t, product(t))
	if have := config.Config.Labels["org.opencontainers.image.version"]; have != "v1.2.3+x" {
		t.Errorf("label of the version %q", have)
	}
	if have := config.Config.Labels["org.opencontainers.image.created"]; have != "2026-01-02T03:04:05Z" {
		t.Errorf("label of the time %q", have)
	}
	const status = "Package: tools\nVersion: 1:2+3\nArchitecture: amd64\n\n"
	for name, want := range map[string]string{
		"usr/lib/os-release":                      "ID=debian\n",
		"var/lib/dpkg/status":                     status,
		"usr/share/doc/tools/copyright":           "do what you like",
		"usr/share/common-licenses/GPL-2":         "the licence",
		"usr/share/doc/egret/LICENSE":             "our licence",
		"usr/share/doc/egret/licences/go/LICENSE": "", // any
	} {
		have, ok := layer[name]
		if !ok || want != "" && string(have.content) != want {
			t.Errorf("%s is %q, want %q", name, have.content, want)
		}
	}
	document := decode[spdxDocument](t, layer[strings.TrimPrefix(sbomFile, "/")].content)
	var urls []string
	for _, p := range document.Packages[1:] {
		urls = append(urls, p.References[0].Locator)
	}
	if !slices.Contains(urls, "pkg:deb/debian/tools@1%3A2%2B3?arch=amd64") ||
		!slices.ContainsFunc(urls, func(u string) bool { return strings.HasPrefix(u, "pkg:golang/stdlib@1.") }) {
		t.Errorf("the SBOM has %v", urls)
	}
	if len(document.Relationships) != len(document.Packages) {
		t.Errorf("%d relationships of %d packages", len(document.Relationships), len(document.Packages))
	}
}

func TestFilesOfNoPackageAreRefused(t *testing.T) {
	p := product(t)
	list := filepath.Join(p.RootDir, "var/lib/dpkg/info/tools:amd64.list")
	content, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	writeTest(t, list, string(bytes.ReplaceAll(content, []byte("/usr/sbin/nft\n"), nil)))
	err = BuildEgret(t.Context(), p, t.TempDir(), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "/usr/sbin/nft is from no Debian package") {
		t.Errorf("error %v", err)
	}
}

// product is a root folder with one Debian package, and programs that a Go command has built.
func product(t *testing.T) Product {
	t.Helper()
	root, bin := debian(t), t.TempDir()
	for _, name := range networkTools() {
		writeTest(t, filepath.Join(root, name), "#!/bin/sh\n")
	}
	writeTest(t, filepath.Join(root, "usr/lib/x86_64-linux-gnu/xtables/libxt_comment.so"), "")
	writeTest(t, filepath.Join(root, "run/lock"), "")
	symlink(t, "/run", filepath.Join(root, "var/run"))
	writeTest(t, filepath.Join(root, "usr/lib/os-release"), "ID=debian\n")
	symlink(t, "../usr/lib/os-release", filepath.Join(root, "etc/os-release"))
	writeTest(t, filepath.Join(root, "usr/share/common-licenses/GPL-2"), "the licence")
	writeTest(t, filepath.Join(root, "usr/share/doc/tools/copyright"), "do what you like")
	ownAll(t, root)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"egret-node", "egret-controller", "egret-cni"} {
		if err := os.Link(own, filepath.Join(bin, program)); err != nil {
			symlink(t, own, filepath.Join(bin, program))
		}
	}
	licence := filepath.Join(t.TempDir(), "LICENSE")
	writeTest(t, licence, "our licence")
	return Product{root, bin, licence, Release{"v1.2.3+x", "0123", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
}

// ownAll has dpkg say that all files of a root folder are from the package tools, and that another package is there.
func ownAll(t *testing.T, root string) {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(root, func(file string, _ os.DirEntry, err error) error {
		list.WriteString(strings.TrimPrefix(file, root) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	writeTest(t, filepath.Join(root, "var/lib/dpkg/info/tools:amd64.list"), list.String())
	writeTest(t, filepath.Join(root, "var/lib/dpkg/info/unused.list"), "/usr/bin/unused\n")
	writeTest(t, filepath.Join(root, "var/lib/dpkg/status"), "Package: tools\nVersion: 1:2+3\nArchitecture: amd64\n\n"+
		"Package: unused\nVersion: 1\nArchitecture: all\n\n")
}

func buildEgret(t *testing.T, p Product) (map[string]member, imageConfig) {
	t.Helper()
	out := t.TempDir()
	if err := BuildEgret(t.Context(), p, out, func(string) {}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(out, Egret().File))
	if err != nil {
		t.Fatal(err)
	}
	archive := members(t, content)
	man := decode[[]manifest](t, archive[manifestFile].content)[0]
	if want := []string{"localhost/egret:v1.2.3_x", Egret().Name}; !slices.Equal(man.RepoTags, want) {
		t.Errorf("the image has the names %q, want %q", man.RepoTags, want)
	}
	return members(t, archive[man.Layers[0]].content), decode[imageConfig](t, archive[man.Config].content)
}
