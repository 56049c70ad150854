package vm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
)

// TestKernelDatapathRemoval: a bond and a VLAN are what they were before they became ports of the kernel's datapath. On
// the first node ovs-vswitchd takes the bond off its bridge. On the second one nothing of Open vSwitch's runs any more.
func TestKernelDatapathRemoval(t *testing.T) {
	before := map[string]string{}
	prepare := func(c *cluster, n sandbox.Member) {
		c.must(c.StopProcess(t.Context(), n.Name, "ovn-controller"))
		c.in(n.Name, "ovs-vsctl", "--timeout=20", "--if-exists", "del-br", "br-int") // ovn-controller makes it at once
		uplinks(c, n)
		before[n.Name] = c.recordHost(n)
		c.must(c.StartProcess(t.Context(), n.Name, "ovn-controller"))
	}
	kernelTest(t, sandbox.Shared, prepare, []part{
		{"SourceAddresses", (*kernelLab).sources},
		{"Removed", func(l *kernelLab) { l.removed(before) }},
	})
}

// bondIsNew matches a bond that the kernel has not looked at yet.
var bondIsNew = regexp.MustCompile(`MASTER.*state UNKNOWN`)

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// recordHost returns what a node's host has, once the kernel uses all its addresses. It leaves out the length of
// queues: the kernel gives one to a link without queue, as the bond's port is, when it first gets a qdisc, which Open
// vSwitch makes there.
func (c *cluster) recordHost(n sandbox.Member) (all string) {
	c.eventually("addresses of "+n.Name, func(ctx context.Context) error {
		out, err := c.ExecIn(ctx, n.Name, "sh", "-c", "ls /etc/cni/net.d"+harness.HostRecording)
		all = strings.ReplaceAll(string(out), "qlen 1000", "")
		if err == nil && (strings.Contains(all, "tentative") || bondIsNew.MatchString(all)) {
			err = errors.New("an address is tentative, or the bond has no state")
		}
		return err
	})
	return all
}

// removed removes Egret from both nodes, twice, as after a command that was interrupted at its end.
func (l *kernelLab) removed(before map[string]string) {
	for i, n := range l.nodes {
		l.differs(n, before[n.Name], "+ ovs-system", "+ breth0", "+ table inet egret")
		command := l.removal(n)
		stop := []string{"egret-node", "ovn-controller", "ovn-northd", "ovsdb-nb", "ovsdb-sb"}
		if i == 1 {
			stop = append(stop, "ovs-vswitchd", "ovsdb-server")
		}
		for _, p := range stop {
			l.must(l.StopProcess(l.t.Context(), n.Name, p))
		}
		for range 2 {
			l.in(n.Name, command...)
		}
		l.differs(n, before[n.Name])
		left := l.in(n.Name, "sh", "-c", harness.MarksRecording)
		if ovsRuns := i == 0; left != "" && !ovsRuns {
			l.t.Errorf("%s still has\n%s", n.Name, left)
		}
	}
}

// differs: what a node has differs from a recording by these lines, or by none.
func (l *kernelLab) differs(n sandbox.Member, before string, lines ...string) {
	l.t.Helper()
	now := l.recordHost(n)
	changed := harness.DifferingLines(before, now)
	if len(lines) == 0 && now != before {
		l.t.Errorf("%s differs from before the install:\n%s", n.Name, changed)
	}
	for _, line := range lines {
		if !strings.Contains(changed, line) {
			l.t.Errorf("%s has no line %q:\n%s", n.Name, line, changed)
		}
	}
}

// removal is the command that removes Egret from a node, with the flags of its agent.
func (l *kernelLab) removal(n sandbox.Member) []string {
	l.t.Helper()
	pid, err := l.PidOf(l.t.Context(), n.Name, "egret-node")
	l.must(err)
	line := l.in(n.Name, "cat", fmt.Sprintf("/proc/%d/cmdline", pid))
	agent := strings.Split(strings.TrimRight(line, "\x00"), "\x00")
	return slices.Concat([]string{agent[0], "remove"}, agent[1:],
		[]string{"--keep-objects", "--ovs-state=/var/lib/openvswitch"})
}
