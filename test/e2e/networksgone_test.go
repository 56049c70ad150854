package e2e

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/harness"
)

// TestNetworksLeaveNothing makes and deletes 30 networks, 50 in the full matrix: those of ten namespaces several times,
// under the same names and each time with other subnets. Half of them have a pod, and one EgressIP serves all of these.
// Agents, ovn-controllers and switches are killed while networks go. Pods of another network lose nothing as long as no
// process is killed. At the end nothing is left.
func TestNetworksLeaveNothing(t *testing.T) {
	c := theCluster(t)
	c.inOneMode(t)
	seen := c.capture(t)
	stays := c.tenant(t, "stays")
	stays.runs("stays-0", "stays-1")
	stayed := func() {
		t.Helper()
		seen.flowing(c, stays.namespace, []string{"stays-0", "stays-1"}, time.Now(), podsTimeout)
	}
	stayed()
	c.labelEgress(t, c.nodes[2])
	c.alone(t)
	before := map[string]rules{}
	for _, node := range c.nodes {
		before[node.Name] = c.settledRules(t, node.Name)
	}
	f := c.fleeting(t)
	killed := []string{"egret-node", "ovs-vswitchd", ""} // one that leads newly does not know what went before
	if fullMatrix() {
		killed = []string{"", "egret-node", "ovn-controller", "ovs-vswitchd", ""}
	}
	for i, process := range killed {
		begin, dropped := time.Now(), c.dropped(t)
		f.arrive(i)
		f.leave(process)
		lost, overflows := seen.lost(begin), c.dropped(t)-dropped
		t.Logf("round %d %s took %s; %s; for want of room %d", i, process, time.Since(begin).Round(time.Second), lost,
			overflows)
		if process == "" && lost.Total > overflows {
			t.Errorf("pods of another network lost datagrams: %v", lost.By)
		}
		stayed()
	}
	f.egress.delete()
	f.leftNothing()
	for _, node := range c.nodes {
		if after := c.settledRules(t, node.Name); !maps.Equal(before[node.Name], after) {
			t.Errorf("node %s has %v, before the networks %v", node.Name, after, before[node.Name])
		}
	}
}

// dropped counts the frames that the switches had no room for. One that was killed may not be back yet.
func (c *cluster) dropped(t *testing.T) (sum int) {
	t.Helper()
	within(t, soon, func() error {
		all, err := harness.DropsOf(t.Context(), c.Cluster)
		for _, drops := range all {
			sum += drops.Overflows()
		}
		return err
	})
	return sum
}

// fleetingName is in the names of all objects and rows of networks that come and go.
const fleetingName = "fleeting"

// fleeting are namespaces whose networks come and go.
type fleeting struct {
	*testing.T
	c      *cluster
	spaces []*tenant
	egress egressIP
}

func (c *cluster) fleeting(t *testing.T) *fleeting {
	f := &fleeting{T: t, c: c}
	label := map[string]string{fleetingName: ""}
	for range 10 {
		n := c.namespace(t, map[string]string{v1.LabelPrimaryNetwork: "", fleetingName: ""})
		f.spaces = append(f.spaces, &tenant{n, fleetingName, map[string][]netip.Addr{}})
	}
	f.egress = c.egressIP(t, fleetingName, c.number(64), selects(label), metav1.LabelSelector{})
	return f
}

// podOf returns the pod that the network of a namespace has; every other one has none.
func (f *fleeting) podOf(i int) (p pod, has bool) {
	return pod{name: fmt.Sprint(fleetingName, "-", i), node: f.c.nodes[i/2%len(f.c.nodes)]}, i%2 == 0
}

// arrive makes the networks and their pods, which leave with the egress IP.
func (f *fleeting) arrive(round int) {
	f.Helper()
	var subnets []v1.CIDR
	for _, form := range []string{"10.%d.0.0/16", "fd00:%d::/48"} {
		subnets = append(subnets, v1.CIDR(fmt.Sprintf(form, 140+round)))
	}
	for i, n := range f.spaces {
		n.asksFor(subnets...)
		if p, has := f.podOf(i); has {
			n.starts(p)
		}
	}
	for i, n := range f.spaces {
		n.hasNetwork("userdefinednetworks", n.name, n.network, n.name+"_"+n.network)
		p, has := f.podOf(i)
		if !has {
			continue
		}
		n.joins(p.name)
		for k, ip := range n.own[p.name] {
			if !netip.MustParsePrefix(string(subnets[k])).Contains(ip) {
				f.Errorf("pod %s has %s, want one of %s", p.name, ip, subnets[k])
			}
		}
		n.from(p.name).to(f.c.outside(0)).formerly(p.node.IPs...).soonArrivesAs(f.c.number(64)...)
	}
}

// leave deletes the networks and their pods, kills a process of all nodes, and returns when the networks are gone.
func (f *fleeting) leave(process string) {
	f.Helper()
	for i, n := range f.spaces {
		must(f.T, f.c.kube.EgressIP.Delete().Namespace(n.name).Resource("userdefinednetworks").Name(n.network).
			Do(f.Context()).Error())
		if p, has := f.podOf(i); has {
			must(f.T, f.c.api.CoreV1().Pods(n.name).Delete(f.Context(), p.name, metav1.DeleteOptions{}))
		}
	}
	if process != "" {
		f.c.restart(f.T, process, f.c.nodes...)
	}
	for _, n := range f.spaces {
		n.awaitNoNetwork("userdefinednetworks", n.name, n.network)
	}
}

// namedBy prints what a node has that names the networks or their subnets. ovn-controller (25.03) keeps the numbers of
// conntrack zones, on its bridge, of some ports that went together with their network.
const namedBy = `
{
	ovsdb-client dump unix:/run/ovn/ovnnb_db.sock OVN_Northbound
	ovsdb-client dump unix:/run/ovn/ovnsb_db.sock OVN_Southbound
	ovsdb-client dump unix:/run/openvswitch/db.sock Open_vSwitch
	nft list ruleset; ip address; ip rule; ip -6 rule; ip route show table all; ip -6 route show table all
	grep -rs . /var/lib/cni
} | sed -E 's/ct-zone-[^,}]*//g' | grep -E '` + fleetingName + `|10\.14[0-4]\.|fd00:14[0-4]:' || true`

// leftNothing waits until no node, and no object about nodes, names the networks.
func (f *fleeting) leftNothing() {
	f.Helper()
	for _, node := range f.c.nodes {
		within(f.T, podsTimeout, func() error {
			left, err := f.c.feed(f.Context(), node.Name, nil, "bash", "-c", namedBy)
			if err == nil && left != "" {
				err = fmt.Errorf("%s still has\n%s", node.Name, left)
			}
			return err
		})
	}
	within(f.T, soon, func() error {
		out, err := f.c.tryKubectl(f.Context(), "get", "nodes,egressnodes,net-attach-def,udn", "-A", "-o", "yaml")
		for line := range strings.Lines(out) {
			if err == nil && strings.Contains(line, fleetingName) {
				err = fmt.Errorf("an object still has %s", line)
			}
		}
		return err
	})
}
