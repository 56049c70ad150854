package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that deploy/cluster calls is in the image: the programs, iptables' modules, and the links that lead to
// each.
func TestEgretImageHasWhatItsContainersCall(t *testing.T) {
	root, bin, out := debian(t), t.TempDir(), t.TempDir()
	for _, name := range networkTools() {
		writeTest(t, filepath.Join(root, name), "#!/bin/sh\n")
	}
	writeTest(t, filepath.Join(root, "usr/lib/x86_64-linux-gnu/xtables/libxt_comment.so"), "")
	writeTest(t, filepath.Join(root, "run/lock"), "")
	symlink(t, "/run", filepath.Join(root, "var/run"))
	for _, program := range []string{"egret-node", "egret-controller", "egret-cni"} {
		writeTest(t, filepath.Join(bin, program), "machine code")
	}
	if err := BuildEgret(root, bin, out, func(string) {}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(out, Egret().File))
	if err != nil {
		t.Fatal(err)
	}
	archive := members(t, content)
	man := decode[[]manifest](t, archive[manifestFile].content)[0]
	if config := decode[imageConfig](t, archive[man.Config].content); len(config.Config.Entrypoint) > 0 {
		t.Errorf("entrypoint %v", config.Config.Entrypoint)
	}
	layer := members(t, archive[man.Layers[0]].content)
	for _, name := range []string{"/usr/local/bin/egret-cni", "/usr/sbin/ovs-vswitchd", "/usr/bin/ovn-controller",
		"/usr/sbin/nft", "/usr/lib/cni/portmap",
		"/usr/lib/x86_64-linux-gnu/xtables/libxt_comment.so", "/var/run", "/var/log/openvswitch/", "/bin"} {
		if _, ok := layer[strings.TrimPrefix(name, "/")]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}
