package harness

import (
	"fmt"
	"reflect"
	"testing"
)

// read is what the commands print, with OVS 3.5 and iproute2 6.15.
func read(drops, lost, locked string) string {
	return socket("ovs-vswitchd", "366", drops) + socket("egret-node", "367", "7") + `
netdev@ovs-netdev:
  lookups: hit:1200 missed:45 lost:` + lost + `
  flows: 30
datapath_drop_lock_error   0.0/sec     0.133/sec        0.0022/sec   total: ` + locked + `
drop_action_of_pipeline    0.0/sec     0.133/sec        0.0022/sec   total: 8
`
}

func socket(process, inode, drops string) string {
	return fmt.Sprintf("p_raw 0 0 *:eth0 * users:((%q,pid=22,fd=46)) ino:%s sk:118f ver:0 flags( running auxdata ) "+
		"skmem:(r0,rb212992,t0,tb212992,f0,w0,o176,bl0,d%s)\n", process, inode, drops)
}

// TestDrops: a socket that has gone takes nothing from what others dropped meanwhile, and an agent's is not the
// switch's.
func TestDrops(t *testing.T) {
	before, err := parseDrops(read("4", "1", "0"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Drops{"ino:366": 4, "lost": 1, "datapath_drop_lock_error": 0, "drop_action_of_pipeline": 8}); !reflect.
		DeepEqual(before, want) {
		t.Fatalf("read %v, want %v", before, want)
	}
	now, err := parseDrops(read("5", "1", "2"))
	if err != nil {
		t.Fatal(err)
	}
	before["ino:365"] = 50
	more := now.Since(before)
	want := Drops{"ino:366": 1, "datapath_drop_lock_error": 2}
	if !reflect.DeepEqual(more, want) || more.Overflows() != 3 {
		t.Errorf("%v more, %d for want of room, want %v, 3", more, more.Overflows(), want)
	}
}
