package harness

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/egret-net/egret/internal/sandbox"
)

// droppedFrames are those of a packet socket (ss(8), skmem), and those whose upcall failed (ovs-dpctl(8)).
var droppedFrames = regexp.MustCompile(`(?:,d|lost:)(\d+)`)

// Overflows counts the frames that a node's switch dropped so far because they came too late to it: Open vSwitch
// forwards in userspace here, with one thread, which shares the machine's cores with all nodes. Frames of everything
// count, so that this is the most that a test may lose by it. It begins anew with the switch.
func Overflows(ctx context.Context, c *sandbox.Cluster, node string) (int, error) {
	out, err := c.ExecIn(ctx, node, "sh", "-c", "ss --packet --memory --no-header --numeric; ovs-appctl dpctl/show")
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, m := range droppedFrames.FindAllStringSubmatch(string(out), -1) {
		count, err := strconv.Atoi(m[1])
		if err != nil {
			return 0, fmt.Errorf("%s: dropped frames %q: %w", node, m[0], err)
		}
		sum += count
	}
	return sum, nil
}
