package image

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Product is what the product's image is made from.
type Product struct {
	RootDir string // of rootfs.Ensure
	BinDir  string // with egret-node, egret-controller and egret-cni
	Licence string // file of the product's own licence
	Release
}

// egretImage has no entrypoint: each container of deploy/cluster names its program.
func egretImage(ctx context.Context, p Product) (Image, error) {
	c, err := productTools(p.RootDir)
	if err != nil {
		return Image{}, err
	}
	files := skeletonFiles()
	for _, log := range []string{"/var/log/openvswitch", "/var/log/ovn"} {
		files = append(files, File{Path: log, Mode: 0o755})
	}
	var programs []string
	for _, program := range []string{"egret-node", "egret-controller", "egret-cni"} {
		source := filepath.Join(p.BinDir, program)
		programs = append(programs, source)
		files = append(files, File{Path: "/usr/local/bin/" + program, Mode: 0o755, Source: source})
	}
	origin, err := originFiles(ctx, c, programs, p)
	if err != nil {
		return Image{}, err
	}
	return Image{Name: p.imageName(), Aliases: []string{Egret().Name}, Env: []string{searchPath},
		Labels: p.imageLabels(), Files: slices.Concat(files, c.listFiles(), origin)}, nil
}

// originFiles are the image's list of packages, its SBOM, and all licences. The closure receives Debian's.
func originFiles(ctx context.Context, c *closure, programs []string, p Product) ([]File, error) {
	packages, err := c.addOrigin()
	if err != nil {
		return nil, err
	}
	modules, err := goComponents(programs)
	if err != nil {
		return nil, err
	}
	licences, err := goLicences(ctx, modules)
	if err != nil {
		return nil, err
	}
	document, err := encodeSBOM(p.Release, slices.Concat(debianComponents(packages), modules))
	if err != nil {
		return nil, err
	}
	own := []File{
		{Path: sbomFile, Mode: 0o644, Content: document},
		{Path: docFolder + "/LICENSE", Mode: 0o644, Source: p.Licence},
	}
	return slices.Concat(dpkgFiles(packages), own, licences), nil
}

var notInTags = regexp.MustCompile(`[^0-9A-Za-z_.-]`)

// imageName has the version as its tag, as the chart's default has: the images of two versions can lie side by side.
func (p Product) imageName() string {
	repository, _, _ := strings.Cut(Egret().Name, ":")
	return repository + ":" + notInTags.ReplaceAllString(p.Version, "_")
}

// imageLabels are those of the OCI image specification (annotations.md).
func (p Product) imageLabels() map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": "Egret", prefix + "source": project, prefix + "licenses": "Apache-2.0",
		prefix + "version": p.Version, prefix + "revision": p.Revision,
		prefix + "created": p.Time.UTC().Format(time.RFC3339),
	}
}

// productTools is the part of the image that is Debian's.
func productTools(rootDir string) (*closure, error) {
	c, err := newClosure(rootDir)
	if err == nil {
		err = c.addAll(slices.Concat(toolPaths(), networkTools()))
	}
	if err == nil {
		err = c.addFolder("/usr/lib/*-linux-gnu/xtables") // iptables loads them by name
	}
	if err == nil {
		_, err = c.resolveLinks("/var/run") // which some name in place of /run
	}
	return c, err
}

// networkTools lists what deploy/cluster and the agent call, by path.
func networkTools() []string {
	const bin = `install nice ovs-vsctl ovs-ofctl ovs-appctl ovs-dpctl ovsdb-tool ovsdb-client
		ovn-northd ovn-controller ovn-nbctl ovn-sbctl ovn-appctl ovn-trace`
	const sbin = "ovsdb-server ovs-vswitchd nft iptables ip6tables modprobe"
	const data = `/usr/share/openvswitch/vswitch.ovsschema /usr/share/openvswitch/scripts/ovs-lib
		/usr/share/ovn/ovn-nb.ovsschema /usr/share/ovn/ovn-sb.ovsschema /usr/lib/cni/portmap`
	paths := strings.Fields(data)
	for _, name := range strings.Fields(bin) {
		paths = append(paths, "/usr/bin/"+name)
	}
	for _, name := range strings.Fields(sbin) {
		paths = append(paths, "/usr/sbin/"+name)
	}
	return paths
}

// addFolder adds what lies in the one folder that pattern names, and everything that needs.
func (c *closure) addFolder(pattern string) error {
	found, err := filepath.Glob(filepath.Join(c.root, pattern))
	if err != nil {
		return err
	}
	for _, dir := range found {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := c.addFile(path.Join(strings.TrimPrefix(dir, filepath.Clean(c.root)), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
