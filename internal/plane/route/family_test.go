package route

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestFamilyWithoutRules: a kernel that was booted without IPv6 says that it does not know the family's rules; so does
// any of a family that has none.
func TestFamilyWithoutRules(t *testing.T) {
	n, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := n.RuleList(unix.AF_BRIDGE); !errors.Is(err, unix.EAFNOSUPPORT) {
		t.Fatalf("the kernel says something else of such a family: %v", err)
	}
	if rules, err := listRules(n, unix.AF_BRIDGE); len(rules) > 0 || err != nil {
		t.Errorf("%v, %v", rules, err)
	}
	if rules, err := listRules(n, netlink.FAMILY_V4); len(rules) == 0 || err != nil {
		t.Errorf("IPv4: %v, %v", rules, err)
	}
}
