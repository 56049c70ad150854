package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// link is the nodes' link into the secondary network.
const link = "eth1"

// secondaryNumber gives the addresses with this number in the secondary network, in each family of the cluster.
func (c *cluster) secondaryNumber(n int) []netip.Addr { return numbered(c.nodes[0].Secondary[0], n) }

// beside is a host outside, at its addresses on the secondary network.
func (c *cluster) beside(i int) endpoint {
	return endpoint{c.hosts[i].Name, c.hosts[i].Secondary[0], sandbox.ClientIPPort}
}

// second is a test with an EgressIP on the nodes' second links.
type second struct {
	*testing.T
	c   *cluster
	n   *namespace
	e   egressIP
	ips []netip.Addr
}

var secondPods = []string{"a", "b", "c"}

func newSecond(t *testing.T, number int, egressNodes ...int) second {
	c := theCluster(t)
	s := second{T: t, c: c, n: c.namespace(t, nil), ips: c.secondaryNumber(number)}
	for _, i := range egressNodes {
		c.labelEgress(t, c.nodes[i])
	}
	for i, p := range secondPods {
		s.n.runs(pod{name: p, node: c.nodes[i], labels: web})
	}
	s.e = c.egressIP(t, s.n.name, s.ips, s.n.itself(), selects(web))
	return s
}

// leave says that all pods leave with the egress IPs, whatever network they send to.
func (s second) leave() {
	s.Helper()
	for _, p := range secondPods {
		s.n.from(p).to(s.c.beside(0)).soonArrivesAs(s.ips...)
		s.n.from(p).to(s.c.beside(1)).arrivesAs(s.ips...)
	}
}

// on runs a command on a node.
func (s second) on(node int, command string) string {
	s.Helper()
	return s.c.on(s.T, s.c.nodes[node].Name, "sh", "-c", command)
}

// restore gives a node's link what a test may have taken: a test must not leave a broken node to the next one.
func (s second) restore(node int) {
	m := s.c.nodes[node]
	commands := []string{"ip link set " + link + " up", "echo 1 > /proc/sys/net/ipv4/conf/" + link + "/forwarding",
		"echo 0 > /proc/sys/net/ipv4/conf/" + link + "/rp_filter",
		"ip rule del pref 5000", "ip -6 rule del pref 5000"}
	for _, ip := range m.Secondary[0] {
		commands = append(commands, fmt.Sprintf("ip addr replace %s dev %s nodad", prefixed(ip), link))
	}
	s.Cleanup(func() { s.c.feed(context.Background(), m.Name, nil, "sh", "-c", strings.Join(commands, "; ")) })
}

// prefixed is an address of the secondary network with its length.
func prefixed(ip netip.Addr) netip.Prefix {
	if ip.Is4() {
		return netip.PrefixFrom(ip, 24)
	}
	return netip.PrefixFrom(ip, 64)
}

// TestSecondary: the egress IP is on the second link of an egress node, and pods on it and on others leave with it.
func TestSecondary(t *testing.T) {
	s := newSecond(t, 50, 1)
	s.c.serveOnNodes(t)
	s.e.readyOn(s.c.nodes[1])
	s.n.runs(pod{name: "other", node: s.c.nodes[1]})
	s.leave()
	s.n.each(
		part{"NodesUntouched", func(_ *testing.T, n *namespace) {
			for i, p := range secondPods {
				for j, node := range s.c.nodes {
					want := s.c.nodes[i].IPs
					if i == j {
						want = n.ips[p]
					}
					n.from(p).to(nodeServer(node)).arrivesAs(want...)
				}
				n.from(p).to(n.pod("other")).arrivesAs(n.ips[p]...)
				s.c.from(t, s.c.nodes[0]).to(n.pod(p)).arrivesAs(s.c.management(t, s.c.nodes[0].Name)...)
			}
			n.from("other").to(s.c.outside(0)).arrivesAs(s.c.nodes[1].IPs...)
		}},
		part{"OneLinkAnswers", func(t *testing.T, n *namespace) { s.part(t, n).oneLinkAnswers() }},
		part{"AddressTaken", func(t *testing.T, n *namespace) { s.part(t, n).addressTaken() }},
		part{"StrictReversePath", func(t *testing.T, n *namespace) { s.part(t, n).strictReversePath() }},
		part{"ForwardingOfAll", func(t *testing.T, n *namespace) { s.part(t, n).forwardingOfAll() }},
		part{"RuleOfSomebodyElse", func(t *testing.T, n *namespace) { s.part(t, n).ruleOfSomebodyElse() }},
		part{"RulesFlushed", func(t *testing.T, n *namespace) { s.part(t, n).rulesFlushed() }},
		part{"RoutesFollow", func(t *testing.T, n *namespace) { s.part(t, n).routesFollow() }},
		part{"OlderKernel", func(t *testing.T, n *namespace) { s.part(t, n).olderKernel() }},
	)
	s.e.delete()
	within(t, soon, func() error { return s.nothingLeft(1) })
	for i, p := range secondPods {
		s.n.from(p).to(s.c.outside(0)).formerly(s.ips...).soonArrivesAs(s.c.nodes[i].IPs...)
	}
}

// part is the same in a part of the test.
func (s second) part(t *testing.T, n *namespace) second {
	s.T, s.n = t, n
	return s
}

// oneLinkAnswers: nobody on the primary network gets an answer for the address, which the host has as its own.
func (s second) oneLinkAnswers() {
	for _, ip := range s.ips {
		if s.resolves(s.c.hosts[0].Name, "eth0", ip) {
			s.Errorf("somebody answers for %s on the primary network", ip)
		}
		if !s.resolves(s.c.hosts[0].Name, link, ip) {
			s.Errorf("nobody answers for %s on its own network", ip)
		}
	}
}

// resolves says whether a host finds out who has an address by one link alone.
func (s second) resolves(host, dev string, ip netip.Addr) bool {
	s.Helper()
	single := netip.PrefixFrom(ip, ip.BitLen())
	s.c.on(s.T, host, "sh", "-c", fmt.Sprintf("ip neigh flush %s; ip route replace %s dev %s", ip, single, dev))
	defer s.c.on(s.T, host, "sh", "-c", fmt.Sprintf("ip route del %s dev %s; ip neigh flush %s", single, dev, ip))
	s.c.on(s.T, host, "bash", "-c", fmt.Sprintf("echo x > /dev/udp/%s/9 || true", ip))
	var answer string
	within(s.T, soon, func() error {
		answer = s.c.on(s.T, host, "ip", "neigh", "show", ip.String(), "dev", dev)
		if !strings.Contains(answer, "lladdr") && !strings.Contains(answer, "FAILED") {
			return fmt.Errorf("host %s waits for %s on %s: %q", host, ip, dev, answer)
		}
		return nil
	})
	return strings.Contains(answer, "lladdr")
}

// addressTaken: it is put back at once, for it is ours.
func (s second) addressTaken() {
	s.on(1, fmt.Sprintf("ip addr del %s dev %s", netip.PrefixFrom(s.ips[0], s.ips[0].BitLen()), link))
	within(s.T, soon, func() error {
		if have := s.on(1, "ip addr show dev "+link); !strings.Contains(have, s.ips[0].String()+"/") {
			return fmt.Errorf("%s is not back on %s:\n%s", s.ips[0], link, have)
		}
		return nil
	})
	s.leave()
}

// strictReversePath is harmless: the connection's mark is on the reply, and with it the way back is by the link, also
// from where the main table has another way to.
func (s second) strictReversePath() {
	s.restore(1)
	s.on(1, "for l in all "+link+"; do echo 1 > /proc/sys/net/ipv4/conf/$l/rp_filter; done")
	s.Cleanup(func() {
		s.c.feed(context.Background(), s.c.nodes[1].Name, nil, "sh", "-c",
			"echo 2 > /proc/sys/net/ipv4/conf/all/rp_filter")
	})
	for _, p := range secondPods {
		s.n.from(p).to(s.c.beside(0)).arrivesAs(s.ips...)
		if s.ips[0].Is4() { // of whose other addresses an IPv6 host tells nobody on this link
			s.n.from(p).to(family4or6(s.c.outside(0), s.ips[0])).arrivesAs(s.ips...)
		}
	}
}

// forwardingOfAll is IPv6's one setting for all links, which the agent has made: it is put back at once, for it is
// ours.
func (s second) forwardingOfAll() {
	const file = "/proc/sys/net/ipv6/conf/all/forwarding"
	if s.ips[len(s.ips)-1].Is4() {
		return
	}
	s.on(1, "echo 0 > "+file)
	within(s.T, soon, func() error {
		if have := s.on(1, "cat "+file); strings.TrimSpace(have) != "1" {
			return fmt.Errorf("%s is %s", file, have)
		}
		return nil
	})
	s.leave()
}

// ruleOfSomebodyElse stands where ours do, and stays.
func (s second) ruleOfSomebodyElse() {
	s.on(1, "ip rule add pref 6000 from 198.51.100.0/24 lookup main")
	s.Cleanup(func() {
		s.c.feed(context.Background(), s.c.nodes[1].Name, nil, "ip", "rule", "del", "pref", "6000", "from",
			"198.51.100.0/24")
	})
	s.on(1, "ip addr add 192.0.2.1/32 dev lo; ip addr del 192.0.2.1/32 dev lo") // has everything looked at
	s.leave()
	if have := s.on(1, "ip rule"); !strings.Contains(have, "from 198.51.100.0/24 lookup main") {
		s.Errorf("the rule has gone:\n%s", have)
	}
}

// olderKernel: an agent that starts where the kernel has not kept the addresses' protocol, as before Linux 5.18, knows
// them for ours by their metric: they are no addresses of the node's, pods go on leaving with them, and the test's end
// sees that they go with the EgressIP.
func (s second) olderKernel() {
	node := s.c.nodes[1]
	s.Cleanup(func() { s.c.startAgent(s.T, node.Name) })
	if err := s.c.StopProcess(s.Context(), node.Name, "egret-node"); err != nil {
		s.Fatal(err)
	}
	for _, ip := range s.ips {
		p, nodad := netip.PrefixFrom(ip, ip.BitLen()), map[bool]string{false: "nodad"}[ip.Is4()]
		s.on(1, fmt.Sprintf("ip addr del %s dev %s; ip addr add %[1]s dev %[2]s metric 234881109 preferred_lft 0 %s", p,
			link, nodad))
	}
	s.c.startAgent(s.T, node.Name)
	within(s.T, soon, func() error {
		_, err := s.c.inspect(s.T, node.Name, "plan")
		return err
	})
	s.leave()
	published := s.c.node(s.T, node.Name).Annotations[v1.Prefix+"host-cidrs"]
	for _, ip := range s.ips {
		if strings.Contains(published, ip.String()+"/") {
			s.Errorf("node %s publishes the egress IP %s as its own: %s", node.Name, ip, published)
		}
	}
}

// routesFollow: what the administrator routes by the link, pods reach by it, at once.
func (s second) routesFollow() {
	if !s.ips[0].Is4() {
		return
	}
	via := s.c.hosts[0].Secondary[0][0]
	s.on(1, fmt.Sprintf("ip route add 198.51.100.0/24 via %s dev %s", via, link))
	table := func() string {
		return s.on(1, "for t in $(ip rule | sed -n 's/.*lookup \\(1[0-9]*\\).*/\\1/p' | sort -u); do ip route show "+
			"table $t; done")
	}
	within(s.T, soon, func() error {
		if have := table(); !strings.Contains(have, "198.51.100.0/24 via "+via.String()) {
			return fmt.Errorf("the link's table has no such route:\n%s", have)
		}
		return nil
	})
	host := s.c.hosts[0].Name
	s.c.on(s.T, host, "ip", "addr", "add", "198.51.100.7/32", "dev", "lo")
	s.Cleanup(func() { s.c.feed(context.Background(), host, nil, "ip", "addr", "del", "198.51.100.7/32", "dev", "lo") })
	for _, p := range secondPods {
		s.n.from(p).to(endpoint{"routed", []netip.Addr{netip.MustParseAddr("198.51.100.7")},
			sandbox.ClientIPPort}).arrivesAs(s.ips...)
	}
	s.on(1, "ip route del 198.51.100.0/24")
	within(s.T, soon, func() error {
		if have := table(); strings.Contains(have, "198.51.100.0/24") {
			return fmt.Errorf("the link's table still has the route:\n%s", have)
		}
		return nil
	})
}

// nothingLeft is nil when a node holds nothing of ours for links any more.
func (s second) nothingLeft(node int) error {
	for _, look := range []string{
		"ip addr show dev " + link + " | grep 'proto 0x55\\|deprecated'", "ip rule | grep 0xe", "ip -6 rule | grep 0xe",
		"ip route show table all proto 69 | grep 'table 1'", "nft list table inet egret | grep 0x0e0000",
	} {
		if out := s.on(node, look+" | grep -v untranslated || true"); strings.TrimSpace(out) != "" {
			return fmt.Errorf("%s says\n%s", look, out)
		}
	}
	return nil
}

// TestSecondaryMoves: without its label, and without its power, a node's addresses go to another; before, after, and on
// the wire meanwhile, every pod leaves with the egress IPs, from its first datagram.
func TestSecondaryMoves(t *testing.T) {
	s := newSecond(t, 51, 0)
	s.e.readyOn(s.c.nodes[0])
	seen := s.c.capture(t)
	for i, m := range s.c.nodes {
		s.n.runs(pod{name: fmt.Sprintf("sender-%d", i), node: m, labels: web, sends: true})
	}
	s.leave()
	s.c.labelEgress(t, s.c.nodes[2])
	s.c.unlabelEgress(t, s.c.nodes[0])
	s.e.readyOn(s.c.nodes[2])
	s.e.tells(v1.EventMoved, "NodeUnlabelled")
	s.leave()
	within(t, soon, func() error { return s.nothingLeft(0) })
	s.c.labelEgress(t, s.c.nodes[1])
	s.c.powerOff(t, s.c.nodes[2].Name)
	s.e.readyOn(s.c.nodes[1])
	for _, p := range secondPods[:2] {
		s.n.from(p).to(s.c.beside(0)).soonArrivesAs(s.ips...)
	}
	s.c.powerOn(t, s.c.nodes[2].Name) // its sender starts again
	seen.onlyFrom(s.n, s.ips)
}

// lost is what an EgressIP says whose address was in a network of an egress node's that is gone.
const lost = "no link has an address in "

// TestSecondaryFaults: what seed egress-ip.md asks of a link goes, one thing after the other. Without another egress
// node the EgressIP waits, and says for what; it heals when the cause goes.
func TestSecondaryFaults(t *testing.T) {
	s := newSecond(t, 52, 1)
	s.e.readyOn(s.c.nodes[1])
	s.leave()
	for _, f := range []struct{ name, does, says, undoes string }{
		{"Down", "ip link set eth1 down", "link eth1 is down: ip link set eth1 up", ""},
		{"Forwarding", "echo 0 > /proc/sys/net/ipv4/conf/eth1/forwarding", "sysctl -w net.ipv4.conf.eth1.forwarding=1",
			"echo 1 > /proc/sys/net/ipv4/conf/eth1/forwarding"},
		{"AddressRemoved", "for a in $(ip -o addr show dev eth1 scope global | grep -v 'proto 0x55\\|deprecated' | " +
			"awk '{print $4}'); do ip addr del $a dev eth1; done",
			lost, ""},
		{"Rule", "ip rule add pref 5000 lookup main; ip -6 rule add pref 5000 lookup main",
			"give it a priority above 6000", "ip rule del pref 5000; ip -6 rule del pref 5000"},
	} {
		if f.name == "Forwarding" && !s.ips[0].Is4() {
			continue // IPv6 has one setting for all links: see forwardingOfAll
		}
		if f.name == "Down" && !s.ips[0].Is4() {
			f.says = lost // the kernel takes a link's IPv6 addresses away when it goes down
		}
		s.restore(1)
		s.on(1, f.does)
		s.waitsFor(f.says)
		undo := f.undoes
		if undo == "" {
			undo = "ip link set eth1 up"
			for _, ip := range s.c.nodes[1].Secondary[0] {
				undo += fmt.Sprintf("; ip addr replace %s dev eth1 nodad", prefixed(ip))
			}
		}
		s.on(1, undo)
		s.e.readyOn(s.c.nodes[1])
		s.leave()
	}
}

// waitsFor looks for what is wrong in the conditions and the Events.
func (s second) waitsFor(says string) {
	s.Helper()
	within(s.T, soon, func() error {
		o, err := s.e.get()
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionAssigned)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, says) {
			return fmt.Errorf("condition Assigned is %+v, want %q in it", c, says)
		}
		return nil
	})
	o, err := s.e.get()
	if err != nil {
		s.Fatal(err)
	}
	within(s.T, soon, func() error {
		if events := s.c.eventsOf(o.UID); !strings.Contains(strings.Join(events, "\n"), says) {
			return fmt.Errorf("no Event with %q among %q", says, events)
		}
		return nil
	})
}

// TestSecondaryLinkDeleted: the link goes while it hosts, and its address moves to another node.
func TestSecondaryLinkDeleted(t *testing.T) {
	s := newSecond(t, 53, 2)
	s.e.readyOn(s.c.nodes[2])
	s.c.labelEgress(t, s.c.nodes[1])
	s.leave()
	name := s.c.nodes[2].Name
	defer s.reboot(name)
	s.on(2, "ip link del "+link)
	s.e.readyOn(s.c.nodes[1])
	// The node writes its addresses and its report at the same time. Of the two causes the first that comes is told.
	s.e.tells(v1.EventMoved, "from "+name+" (LinkFault: "+lost, "from "+name+" (NotInNetwork)")
	s.leave()
}

// reboot gives a node its links back.
func (s second) reboot(name string) {
	off := time.Now()
	if err := s.c.PowerOff(name); err != nil {
		s.Error(err)
	}
	if err := s.c.PowerOn(context.Background(), name); err != nil {
		s.Error(err)
	}
	within(s.T, podsTimeout, func() error { return s.c.isReadySince(name, off) })
}
