package e2e

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/test/harness"
)

// telling are, by the log of a node, the lines that say what moves addresses and ends connections on a busy machine
// which nothing else did: another node found silent or heard again, connections ended, a process that ended or stood
// still, OVN's or Open vSwitch's own word of its end (an assertion, a signal).
var telling = map[string][]string{
	"log/egret/egret-node.log":       {"tunnel to another node", "whether any other node answers", "connections with"},
	"log/egret/egret-controller.log": {"reachability of a node"},
	"log/egret/ovs-vswitchd.log":     stoodStillOrEnded,
	"log/egret/ovn-controller.log":   stoodStillOrEnded,
	"log/egret/ovsdb-server.log":     stoodStillOrEnded,
	"init.log":                       {"unit ended"},
}

var stoodStillOrEnded = []string{"|EMER|", "Unreasonably long", "fatal-signal"}

// tellsWhoWasHeard has a test that fails print what its nodes' logs tell of the time it ran. A test fails if switches
// dropped recirculated frames meanwhile.
func (c *cluster) tellsWhoWasHeard(t *testing.T) {
	if c.listens == t {
		return
	}
	c.listens = t
	begin := time.Now()
	t.Cleanup(func() {
		c.dropsNoRecirculated(t)
		if !t.Failed() {
			return
		}
		for _, n := range c.nodes {
			for log, about := range telling {
				if lines := since(begin, filepath.Join(c.etc(n), "..", log), about); len(lines) > 0 {
					t.Logf("%s of %s:\n%s", log, n.Name, strings.Join(lines, "\n"))
				}
			}
		}
	})
}

// dropsNoRecirculated fails a test if a switch has dropped frames meanwhile that went through conntrack too often.
func (c *cluster) dropsNoRecirculated(t *testing.T) {
	var drops map[string]harness.Drops
	err := harness.Until(context.Background(), soon, time.Second, func() (err error) { // a switch may be starting
		drops, err = harness.DropsOf(context.Background(), c.Cluster)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for node, now := range drops {
		if n := now.Since(c.drops[node]).Recirculated(); n > 0 {
			t.Errorf("the switch of %s dropped %d frames that went through conntrack too often", node, n)
		}
	}
	c.drops = drops
}

// since are the lines of a log about something, from a time on.
func since(begin time.Time, log string, about []string) (lines []string) {
	f, err := os.Open(log)
	if err != nil {
		return nil // it does not run there
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		at, ok := written(s.Text())
		is := func(what string) bool { return strings.Contains(s.Text(), what) }
		if ok && !at.Before(begin.Truncate(time.Second)) && slices.ContainsFunc(about, is) {
			lines = append(lines, s.Text())
		}
	}
	return lines
}

// written is the time of a line of slog's, or of Open vSwitch's, which has whole seconds.
func written(line string) (time.Time, bool) {
	text, _ := strings.CutPrefix(line, "time=")
	if i := strings.IndexAny(text, " |"); i >= 0 {
		text = text[:i]
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}
