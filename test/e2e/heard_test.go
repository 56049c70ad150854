package e2e

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// heard are what agents and controllers log when they find another node silent, or hear it again, and when they end
// connections.
var heard = []string{"tunnel to another node", "whether any other node answers", "reachability of a node",
	"connections with a former source ended"}

// tellsWhoWasHeard has a test that fails print who was silent for whom while it ran, and whose connections were ended:
// on a busy machine that is what moves addresses which nothing else did.
func (c *cluster) tellsWhoWasHeard(t *testing.T) {
	if c.listens == t {
		return
	}
	c.listens = t
	begin := time.Now()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, n := range c.nodes {
			for _, program := range []string{"egret-node", "egret-controller"} {
				lines := since(begin, filepath.Join(c.etc(n), "../log/egret", program+".log"))
				t.Logf("%s of %s:\n%s", program, n.Name, strings.Join(lines, "\n"))
			}
		}
	})
}

// since are the lines of a log about who is heard, from a time on.
func since(begin time.Time, log string) (lines []string) {
	f, err := os.Open(log)
	if err != nil {
		return nil // it does not run there
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		text, _ := strings.CutPrefix(s.Text(), "time=")
		stamp, _, _ := strings.Cut(text, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		about := func(what string) bool { return strings.Contains(text, what) }
		if err == nil && !at.Before(begin) && slices.ContainsFunc(heard, about) {
			lines = append(lines, s.Text())
		}
	}
	return lines
}
