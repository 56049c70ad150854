// Package ovntest runs a real OVN without a network: two ovsdb-servers, ovn-northd and ovn-trace from the root folder,
// on unix sockets in a folder of the test's own. It needs no privileges.
//
// In: the root folder, $EGRET_CACHE/root or root-seed (/var/cache/egret by default). Out: an Env with the sockets.
package ovntest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Root returns the folder with Debian's OVN, and skips the test without one.
func Root(t testing.TB) string {
	t.Helper()
	cache := os.Getenv("EGRET_CACHE")
	if cache == "" {
		cache = "/var/cache/egret"
	}
	for _, name := range []string{"root", "root-seed"} {
		root := filepath.Join(cache, name)
		if _, err := os.Stat(filepath.Join(root, "usr/share/ovn/ovn-nb.ovsschema")); err == nil {
			return root
		}
	}
	t.Skipf("needs the OVN root folder in %s: run `make root`, or set EGRET_CACHE", cache)
	return ""
}

// rootCommand runs a program of the root folder with that folder's own libraries, so that it sees this machine's files
// and needs no chroot.
func rootCommand(root, program string, args ...string) *exec.Cmd {
	const arch = "x86_64-linux-gnu"
	libs := filepath.Join(root, "usr/lib", arch) + ":" + filepath.Join(root, "usr/lib")
	loader := filepath.Join(root, "lib64/ld-linux-x86-64.so.2")
	return exec.Command(loader, append([]string{"--library-path", libs, filepath.Join(root, program)}, args...)...)
}
