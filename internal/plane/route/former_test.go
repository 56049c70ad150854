package route

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// forwarding are rows that change a setting of one link, and of all.
func forwarding() *plan.State {
	return state(map[string]*plan.Rows{"own": {Sysctls: map[plan.Sysctl]string{
		{Key: forwardAllKey}: "1", {Key: plan.LinkSetting("all", "send_redirects")}: "0",
		{Key: plan.LinkSetting("gone0", "rp_filter")}: "2", {Key: plan.LinkSetting("eth0/100", "rp_filter")}: "2"}}})
}

// TestSysctlsAreRestored: what a second process changes further leaves the values of before the first one. Links that
// forwarded before all of them did forward afterwards, and no others.
func TestSysctlsAreRestored(t *testing.T) {
	planetest.OwnNetns(t)
	for _, link := range []string{"eth0.100", "router0", "gone0"} {
		ip(t, "link add "+link+" type bridge")
	}
	root := "/proc/sys/net/"
	values := map[string]string{"ipv6/conf/all/forwarding": "0", "ipv6/conf/default/forwarding": "0",
		"ipv6/conf/router0/forwarding": "1", "ipv6/conf/router0/accept_ra": "1", "ipv6/conf/eth0.100/forwarding": "0",
		"ipv6/conf/eth0.100/accept_ra": "1", "ipv4/conf/all/send_redirects": "1", "ipv4/conf/eth0.100/rp_filter": "1",
		"ipv4/conf/gone0/rp_filter": "1"}
	for _, key := range []string{"ipv6/conf/all/forwarding", "ipv6/conf/router0/forwarding"} {
		fatal(t, os.WriteFile(root+key, []byte(values[key]), 0o644)) // all first: it changes the others
		delete(values, key)
	}
	for key, value := range values {
		fatal(t, os.WriteFile(root+key, []byte(value), 0o644))
	}
	values["ipv6/conf/all/forwarding"], values["ipv6/conf/router0/forwarding"] = "0", "1"
	file := filepath.Join(t.TempDir(), "run", "former")
	for range 2 {
		p, err := New(Options{FormerSysctls: file})
		fatal(t, err)
		fatal(t, apply(t, p, forwarding()))
		fatal(t, os.WriteFile(root+"ipv4/conf/eth0.100/rp_filter", []byte("0"), 0o644)) // by somebody else
	}
	if now := ip(t, "link show eth0.100"); readSetting(t, root+"ipv6/conf/eth0.100/accept_ra") != "2" {
		t.Fatalf("nothing was changed: %s", now)
	}
	ip(t, "link del gone0")
	delete(values, "ipv4/conf/gone0/rp_filter")
	for range 2 { // the second one has nothing to do
		p, err := New(Options{FormerSysctls: file})
		fatal(t, err)
		fatal(t, p.RestoreSysctls())
		for key, want := range values {
			if have := readSetting(t, root+key); have != want {
				t.Errorf("%s is %q, want %q", key, have, want)
			}
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

func readSetting(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	fatal(t, err)
	return strings.TrimSpace(string(text))
}

// TestFakeRestoresSysctls is the same on the fake, which other packages' tests use.
func TestFakeRestoresSysctls(t *testing.T) {
	f := NewFake()
	f.former.file = filepath.Join(t.TempDir(), "former")
	f.Sysctls[plan.LinkSetting("all", "send_redirects")] = "1"
	f.Sysctls["net.ipv6.conf.eth0.accept_ra"], f.Sysctls["net.ipv6.conf.eth0.forwarding"] = "1", "0"
	f.Sysctls["net.ipv6.conf.eth0.disable_ipv6"] = "0"
	fatal(t, apply(t, f.Plane, forwarding()))
	if have := f.Sysctls["net.ipv6.conf.eth0.accept_ra"]; have != "2" {
		t.Errorf("accept_ra is %q while the host forwards, want 2", have)
	}
	fatal(t, f.RestoreSysctls())
	for key, want := range map[string]string{plan.LinkSetting("all", "send_redirects"): "1",
		"net.ipv6.conf.eth0.accept_ra": "1"} {
		if have := f.Sysctls[key]; have != want {
			t.Errorf("%s is %q, want %q", key, have, want)
		}
	}
}
