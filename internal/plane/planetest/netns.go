package planetest

import (
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// OwnNetns moves the test into a new network namespace, and skips it without root. The test's thread is never given
// back: it dies with the test, and the namespace with it. Other goroutines stay where they were.
func OwnNetns(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	runtime.LockOSThread()
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
}

// VethPair makes two links that are connected, and up.
func VethPair(t testing.TB, one, two string) {
	t.Helper()
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: one}, PeerName: two}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{one, two} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
	}
}
