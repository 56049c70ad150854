package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/test/traffic"
)

// agentProgram is where a node has the agent's program.
const agentProgram = "/opt/egret/bin/egret-node"

// inspect runs egret-node plan or egret-node trace on a node.
func (c *cluster) inspect(t *testing.T, node string, question ...string) (string, error) {
	return c.feed(t.Context(), node, nil, append([]string{agentProgram}, question...)...)
}

// differs are the lines of egret-node plan --diff on a node.
func (c *cluster) differs(t *testing.T, node string, more ...string) []string {
	t.Helper()
	text, err := c.inspect(t, node, append([]string{"plan", "--diff"}, more...)...)
	must(t, err)
	return strings.Split(strings.TrimSpace(text), "\n")
}

// inSync waits until a node's targets hold what its agent wants, and nothing else.
func (c *cluster) inSync(t *testing.T, node string) {
	t.Helper()
	within(t, podsTimeout, func() error {
		diff, err := c.inspect(t, node, "plan", "--diff")
		if err == nil && diff != "" {
			err = fmt.Errorf("node %s differs from its plan:\n%s", node, diff)
		}
		return err
	})
}

// fault is a change of a node's targets that nobody asked for.
type fault struct {
	command string // of a shell on the node
	told    string // is a part of the line that says so
}

// TestPlanDiff: nothing is told of a node that is in sync; rows that somebody adds to its targets, or takes from them,
// are told of one by one. The agent would heal most of them at once: while nobody can write nftables, which the
// bridge's flows and the logical network wait for, all stays as it is.
func TestPlanDiff(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	e := c.egressIP(t, "plan-diff", c.number(170), n.itself(), metav1.LabelSelector{})
	e.ready()
	n.runs(pod{name: "a", node: c.nodes[0]})
	c.noneEnds(t)
	for _, node := range c.nodes {
		c.inSync(t, node.Name)
	}
	node := c.nodes[0].Name
	faults := faultsWith(n.ips["a"][0])
	write := c.holdsRules(t, node, faults[0])
	for _, f := range faults[1:] {
		c.on(t, node, "sh", "-c", f.command)
	}
	tellsOf(t, faults, c.differs(t, node))
	own := c.differs(t, node, "--owner", "EgressIP/plan-diff")
	tellsOf(t, append(faults[:2:2], fault{"asking of the EgressIP alone", "whose they were: 3 "}), own)
	write()
	// The flows of a switch are read when an agent starts, after something could not be written, and every few minutes.
	within(t, soon, func() error {
		lines := c.differs(t, node)
		if len(lines) == 1 && lines[0] == "" {
			return nil
		}
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "flow ") {
			return fmt.Errorf("want the two flows alone, have %q", lines)
		}
		return nil
	})
	c.restart(t, "egret-node", c.nodes[0])
	c.inSync(t, node)
	n.from("a").to(c.outside(0)).soonArrivesAs(c.number(170)...)
}

// tellsOf says that of each fault there is one line, and no other.
func tellsOf(t *testing.T, faults []fault, lines []string) {
	t.Helper()
	for _, f := range faults {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, f.told) }) {
			t.Errorf("after %s: nothing tells of %q", f.command, f.told)
		}
	}
	if len(lines) != len(faults) {
		t.Errorf("%d lines of %d faults:\n%s", len(lines), len(faults), strings.Join(lines, "\n"))
	}
}

// heldNft is where nft can be found while it is held in its own place.
const (
	nft     = "/usr/sbin/nft"
	heldNft = "/run/egret-e2e-nft"
)

// faultsWith are some of each target. The first two are of rows that an EgressIP with this pod has; what is added has
// our marks.
func faultsWith(pod netip.Addr) []fault {
	const (
		policy = "egressip/plan-diff/v4"
		find   = "ovn-nbctl --bare --columns=_uuid find Logical_Router_Policy "
		stray  = `ovn-nbctl -- --id=@p create Logical_Router_Policy priority=1 action=allow `
	)
	return []fault{
		{heldNft + " delete element inet egret egressip-guarded-pods.v4 { " + pod.String() + " }",
			"nft missing: nft elem egressip-guarded-pods.v4 " + pod.String()},
		{"ovn-nbctl remove Logical_Router ovn_cluster_router policies $(" + find + `'external_ids:"k8s.ovn.org/id"="` +
			policy + `"')`, "nb missing: Logical_Router_Policy/" + policy},
		{heldNft + " add element inet egret egressip-guarded-pods.v4 { 10.244.99.99 }",
			"nft unwanted: nft elem egressip-guarded-pods.v4 10.244.99.99"},
		{stray + `match='"ip4.src == 10.244.99.99"' external_ids:'"k8s.ovn.org/id"'=stray ` +
			`external_ids:'"k8s.ovn.org/owner-controller"'=egret -- add Logical_Router ovn_cluster_router policies @p`,
			"nb unwanted: Logical_Router_Policy/stray"},
		{"ovs-ofctl --strict del-flows breth0 table=1,priority=9,ipv6,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
			"flow missing: breth0 table=1 priority=9,ipv6,dl_dst=01:00"},
		{"ovs-ofctl add-flow breth0 cookie=0x770deff105,priority=3,tcp,actions=drop",
			"flow unwanted: breth0 priority=3,tcp actions=drop"},
	}
}

// holdsRules has a node's nft refuse to write until write is called, and waits until the agent has met that, by a
// fault that it would mend.
func (c *cluster) holdsRules(t *testing.T, node string, first fault) (write func()) {
	t.Helper()
	const stub = `#!/bin/sh
case " $* " in *" -f "*) echo held by a test >&2; exit 1;; esac
exec ` + heldNft + ` "$@"
`
	c.on(t, node, "cp", "-L", nft, heldNft)
	if _, err := c.feed(t.Context(), node, []byte(stub), "sh", "-c", "cat >$0 && chmod +x $0 && mount --bind $0 $1",
		heldNft+"-stub", nft); err != nil {
		t.Fatal(err)
	}
	write = sync.OnceFunc(func() {
		// A shell that runs the stub just then keeps it open: umount(8) alone would find the target busy.
		if _, err := c.feed(context.Background(), node, nil, "umount", "--lazy", nft); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(write)
	c.on(t, node, "sh", "-c", first.command)
	within(t, soon, func() error {
		o := &egretv1.EgressNode{}
		err := c.kube.Egret.Get().Resource("egressnodes").Name(node).Do(t.Context()).Into(o)
		if err == nil && !strings.Contains(fmt.Sprint(o.Status.Problems), "held by a test") {
			err = fmt.Errorf("the agent has not met the nft that does not write: %q", o.Status.Problems)
		}
		return err
	})
	return write
}

// TestTraceTellsTheTruth: what egret-node trace and kubectl egret explain say of pods' packets is how they arrive: with
// an egress IP and without, in a family that the EgressIP has and in the other, from the holder's pods and others, to
// hosts outside, nodes and pods; with several addresses, over every next hop.
func TestTraceTellsTheTruth(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	one, two := map[string]string{"app": "one"}, map[string]string{"app": "two"}
	c.egressIP(t, "trace-one", c.number(171)[:1], n.itself(), selects(one)).ready()
	c.egressIP(t, "trace-two", concat(c.number(172), c.number(173)), n.itself(), selects(two)).ready()
	n.runs(
		pod{name: "one-1", node: c.nodes[0], labels: one, sends: true},
		pod{name: "one-2", node: c.nodes[1], labels: one, sends: true},
		pod{name: "one-3", node: c.nodes[2], labels: one, sends: true},
		pod{name: "two-1", node: c.nodes[0], labels: two, sends: true},
		pod{name: "two-3", node: c.nodes[2], labels: two, sends: true},
		pod{name: "none-1", node: c.nodes[0], sends: true}, pod{name: "none-3", node: c.nodes[2], sends: true},
	)
	c.serveOnNodes(t)
	seen := c.capture(t)
	begin := time.Now()
	for p, node := range n.at {
		for _, to := range []endpoint{c.outside(0), n.pod("none-3"), n.pod("one-2"), nodeServer(c.nodes[2])} {
			if to.name == n.pod(p).name {
				continue
			}
			n.arrivesAsTraced(p, to)
			if node == c.nodes[0].Name {
				n.explainedAsTraced(p, to)
			}
		}
	}
	for p := range n.at {
		n.seenAsTraced(p, seen.Since(begin))
	}
}

// arrivesAsTraced opens connections to an endpoint until they have had every source that was traced, and says that
// they had no other.
func (n *namespace) arrivesAsTraced(pod string, to endpoint) {
	n.t.Helper()
	for _, ip := range to.ips {
		single := to
		single.ips = []netip.Addr{ip}
		want, have := n.traced(pod, ip, "tcp", to.port), []netip.Addr(nil)
		for range 20 {
			seen, err := n.from(pod).to(single).sources(3)
			must(n.t, err)
			if have = sortedOnce(append(have, seen...)); slices.Equal(have, want) {
				break
			}
		}
		if !slices.Equal(have, want) {
			n.t.Errorf("pod %s to %s %s: connections arrive as %v, traced %v", pod, to.name, ip, have, want)
		}
	}
}

// explainedAsTraced says that kubectl egret explain, which asks no node, comes to the same sources.
func (n *namespace) explainedAsTraced(pod string, to endpoint) {
	n.t.Helper()
	for _, ip := range to.ips {
		want := n.traced(pod, ip, "tcp", to.port)
		if have := n.explained(pod, ip, "tcp", to.port); !slices.Equal(have, want) {
			n.t.Errorf("pod %s to %s %s: explained %v, traced %v", pod, to.name, ip, have, want)
		}
	}
}

// seenAsTraced says that a pod's datagrams passed the network outside with no other source than was traced.
func (n *namespace) seenAsTraced(pod string, all []traffic.Sighting) {
	n.t.Helper()
	have := map[netip.Addr][]netip.Addr{} // sources by destination
	for _, x := range all {
		if x.Pod == n.name+"/"+pod {
			have[x.Dst] = sortedOnce(append(have[x.Dst], x.Src))
		}
	}
	if len(have) == 0 {
		n.t.Errorf("no datagram of pod %s was seen", pod)
	}
	for to, sources := range have {
		want := n.traced(pod, to, "udp", traffic.Port)
		for _, source := range sources {
			if !slices.Contains(want, source) {
				n.t.Errorf("datagrams of pod %s to %s have source %s, traced %v", pod, to, source, want)
			}
		}
	}
}

// traced are the sources with which a pod's packets arrive, as the agent of its node says.
func (n *namespace) traced(pod string, to netip.Addr, protocol string, port int) []netip.Addr {
	n.t.Helper()
	text, err := n.c.inspect(n.t, n.at[pod], "trace", n.name+"/"+pod, to.String(), "--protocol", protocol, "--port",
		fmt.Sprint(port))
	must(n.t, err)
	return n.sourcesIn(text)
}

// explained are the same, as kubectl egret explain says, a plugin of kubectl.
func (n *namespace) explained(pod string, to netip.Addr, protocol string, port int) []netip.Addr {
	n.t.Helper()
	text, err := n.c.Kubectl(n.t.Context(), "egret", "explain", pod, to.String(), "--namespace", n.name,
		"--protocol", protocol, "--port", fmt.Sprint(port)).CombinedOutput()
	if err != nil {
		n.t.Fatalf("kubectl egret explain: %v\n%s", err, text)
	}
	answer, _, _ := strings.Cut(string(text), "\n\n")
	return n.sourcesIn(strings.ReplaceAll(answer, " | ", "\n"))
}

// sourcesIn are those of the ends that a text tells of.
func (n *namespace) sourcesIn(text string) (out []netip.Addr) {
	n.t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if line[0] == ' ' || words[0] == "pod" && strings.Contains(line, ", ") {
			continue // a step, or what was asked
		}
		source, err := netip.ParseAddr(words[len(words)-1])
		if err != nil {
			n.t.Fatalf("a packet's way ends with %q:\n%s", line, text)
		}
		out = append(out, source)
	}
	return sortedOnce(out)
}

func sortedOnce(list []netip.Addr) []netip.Addr {
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}
