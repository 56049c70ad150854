package harness

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/sandbox"
)

// Drops are the frames that a node's switch has dropped so far, by where: one of its packet sockets, the upcalls, or a
// counter of Open vSwitch's (coverage/show).
type Drops map[string]int

// counted are the numbers of the commands' answers: the drops of a packet socket of the switch's (ss(8), skmem), by its
// inode; upcalls that failed (ovs-dpctl(8)); frames that Open vSwitch itself dropped.
var counted = regexp.MustCompile(`"ovs-vswitchd".* (ino:\d+) .*,d(\d+)\)` +
	`|(lost):(\d+)|((?:datapath_drop|drop_action)_\w+) .*total: (\d+)`)

// DropsOf reads what the switches of all nodes have dropped, by node. It begins anew with the switch; a socket goes
// with its port.
func DropsOf(ctx context.Context, c *sandbox.Cluster) (map[string]Drops, error) {
	all := map[string]Drops{}
	for _, n := range c.Nodes() {
		out, err := c.ExecIn(ctx, n.Name, "sh", "-c", "ss --packet --memory --extended --processes --oneline "+
			"--no-header --numeric; ovs-appctl dpctl/show; ovs-appctl coverage/show")
		if err != nil {
			return nil, err
		}
		if all[n.Name], err = parseDrops(string(out)); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return all, nil
}

func parseDrops(text string) (Drops, error) {
	drops := Drops{}
	for _, m := range counted.FindAllStringSubmatch(text, -1) {
		count, err := strconv.Atoi(m[2] + m[4] + m[6])
		if err != nil {
			return nil, fmt.Errorf("dropped frames %q: %w", m[0], err)
		}
		drops[m[1]+m[3]+m[5]] = count
	}
	return drops, nil
}

// Since are the drops that came after others were read, those above zero.
func (d Drops) Since(before Drops) Drops {
	more := Drops{}
	for where, count := range d {
		if n := count - before[where]; n > 0 {
			more[where] = n
		}
	}
	return more
}

// Overflows counts the frames that came too late: Open vSwitch forwards in userspace here, with one thread, which
// shares the machine's cores with all nodes. Frames of everything count, so that this is the most that a test may lose
// by it. What a flow drops is not among them.
func (d Drops) Overflows() int {
	sum := 0
	for where, count := range d {
		if where == "lost" || strings.HasPrefix(where, "ino:") || slices.Contains(late, where) {
			sum += count
		}
	}
	return sum
}

// late are Open vSwitch's own: its threads that decide about new flows stood still, or had too many at once.
var late = []string{"datapath_drop_lock_error", "datapath_drop_upcall_error"}

// Recirculated counts the frames that went through conntrack too often on one way: Open vSwitch's userspace datapath
// (3.5) drops these. TCP sends them again, so that only this counter tells.
func (d Drops) Recirculated() int { return d["datapath_drop_recirc_error"] }
