package podlink

import (
	"os/exec"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestDeleteAll: pods' pairs go, and nothing else whose name is like theirs.
func TestDeleteAll(t *testing.T) {
	planetest.OwnNetns(t)
	theirs := []string{"eg0", "eg494be95c831", "eg494BE95C831E", "egress0000000e", "eg000000000001"}
	for _, command := range [][]string{
		{"add", HostName("c1"), "type", "veth", "peer", "name", "p1"},
		{"add", PrimaryHostName("c1"), "type", "veth", "peer", "name", "p2"},
		{"add", theirs[0], "type", "veth", "peer", "name", "p3"},
		{"add", theirs[1], "type", "veth", "peer", "name", "p4"},
		{"add", theirs[2], "type", "veth", "peer", "name", "p5"},
		{"add", theirs[3], "type", "veth", "peer", "name", "p6"},
		{"add", theirs[4], "type", "bridge"},
	} {
		if out, err := exec.Command("ip", append([]string{"link"}, command...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	for _, want := range []int{2, 0} {
		if n, err := DeleteAll(); err != nil || n != want {
			t.Errorf("%d were deleted, want %d (%v)", n, want, err)
		}
	}
	for _, name := range theirs {
		if _, err := netlink.LinkByName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
