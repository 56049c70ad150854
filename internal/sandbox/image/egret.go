package image

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// egretImage has no entrypoint: each container of deploy/cluster names its program.
func egretImage(rootDir, binDir string) (Image, error) {
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
	if err != nil {
		return Image{}, err
	}
	files := append(skeletonFiles(), c.listFiles()...)
	for _, log := range []string{"/var/log/openvswitch", "/var/log/ovn"} {
		files = append(files, File{Path: log, Mode: 0o755})
	}
	for _, program := range []string{"egret-node", "egret-controller", "egret-cni"} {
		files = append(files, File{Path: "/usr/local/bin/" + program, Mode: 0o755,
			Source: filepath.Join(binDir, program)})
	}
	return Image{Name: Egret().Name, Env: []string{searchPath}, Files: files}, nil
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
