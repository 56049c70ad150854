package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestFragments: datagrams that a pod sends in fragments arrive with an egress IP, also where there are several on
// different nodes, among which OVS chooses. Fragments whose rest is lost leave nowhere, whatever else the nodes send
// when conntrack gives them up.
func TestFragments(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	n.runs(pod{name: "away", node: c.nodes[0], labels: web}, pod{name: "home", node: c.nodes[1], labels: web},
		pod{name: "other2", node: c.nodes[1]}, pod{name: "other3", node: c.nodes[2]})
	ips := slices.Concat(c.number(218), c.number(219))
	c.egressIP(t, "fragments", ips, n.itself(), selects(web)).readyOn(c.nodes[1], c.nodes[2])
	n.each(
		part{"Whole", func(t *testing.T, n *namespace) { n.sendsFragments(t, ips) }},
		part{"Lone", loneFragments},
	)
}

// sendsFragments has pods send to all hosts outside.
func (n *namespace) sendsFragments(t *testing.T, want []netip.Addr) {
	const port, size = 7090, 3000
	for _, h := range n.c.hosts {
		for _, ip := range h.IPs {
			r := &receiver{at: netip.AddrPortFrom(ip, port)}
			arrived := r.records(t, h.Name)
			for _, p := range []string{"away", "home"} {
				d := n.sentUntil(t, p, r, make([]byte, size), arrived)
				if d.size != size || !slices.Contains(want, d.from.Addr()) {
					t.Errorf("%d bytes of pod %s arrive at %s as %s, want %d of %v", d.size, p, ip, d.from, size, want)
				}
			}
		}
	}
}

// sentUntil has a pod send until a datagram arrives, and is that. The first may be lost while an address is resolved.
func (n *namespace) sentUntil(t *testing.T, pod string, to *receiver, data []byte, arrived <-chan arrival) (d arrival) {
	t.Helper()
	for range 3 {
		must(t, n.inside(pod, func() error { return to.isSent(data) }))
		select {
		case d = <-arrived:
			return d
		case <-time.After(time.Second):
		}
	}
	return d
}

type arrival struct {
	from netip.AddrPort
	size int
}

// records gives what arrives.
func (r *receiver) records(t *testing.T, host string) <-chan arrival {
	t.Helper()
	var conn *net.UDPConn
	must(t, sandbox.InNetns(host, func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(r.at))
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	all := make(chan arrival, 1<<15)
	go func() {
		for b := make([]byte, 1<<16); ; {
			size, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			all <- arrival{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), size}
		}
	}()
	return all
}

// loneFragments cuts all fragments but the first of what a pod sends by tunnels, and waits until the nodes that
// translate have given the first ones up (15 to 20 s), while other pods there send whole datagrams.
func loneFragments(t *testing.T, n *namespace) {
	n.c.inFullMatrix(t)
	n.c.inOneMode(t)
	outside := n.c.countsOutside(t, n.ips["away"])
	var others []*receiver
	for _, ip := range n.c.hosts[0].IPs {
		others = append(others, receives(t, n.c.hosts[0].Name, netip.AddrPortFrom(ip, 7091)))
		lost := &receiver{at: netip.AddrPortFrom(ip, 7092)}
		for range 50 {
			must(t, n.inside("away", func() error { return lost.isSent(make([]byte, 3000)) }))
		}
	}
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); {
		for _, p := range []string{"other2", "other3"} {
			for _, r := range others {
				must(t, n.inside(p, r.isSentOne))
			}
		}
	}
	for _, r := range others {
		if r.seen.Load() < 100 {
			t.Errorf("%d whole datagrams arrived at %s meanwhile", r.seen.Load(), r.at)
		}
	}
	for what, packets := range outside() {
		if leaked := strings.HasPrefix(what, "left"); leaked != (packets == 0) {
			t.Errorf("%d packets %s", packets, what)
		}
	}
}

// countsOutside cuts fragments but the first, and counts them and the packets that have one of these sources.
func (c *cluster) countsOutside(t *testing.T, sources []netip.Addr) (counts func() map[string]int) {
	t.Helper()
	const table = "bridge e2e_fragments"
	// In a tunnel the pod's frame begins 24 bytes after the UDP header (RFC 8926, and OVN's option), its packet 38.
	tunnel := "ip protocol udp udp dport 6081 "
	rules := tunnel + `@th,288,16 0x0800 @th,352,16 & 0x1fff != 0 counter drop comment "cut of IPv4"; ` +
		tunnel + `@th,288,16 0x86dd @th,352,8 44 @th,640,16 & 0xfff8 != 0 counter drop comment "cut of IPv6"; `
	for _, ip := range sources {
		protocol := map[bool]string{true: "ip6", false: "ip"}[ip.Is6()]
		rules += fmt.Sprintf("%s saddr %s counter comment \"left as %s\"; ", protocol, ip, ip)
	}
	c.nft(t, "table "+table+" { chain forward { type filter hook forward priority 0; "+rules+"}; }")
	t.Cleanup(func() { c.nft(t, "delete table "+table) })
	return func() map[string]int { return counted(t, c.nft(t, "list table "+table)) }
}

// nft runs a script on the fabric.
func (c *cluster) nft(t *testing.T, script string) (out []byte) {
	t.Helper()
	must(t, sandbox.InNetns(c.FabricNetns(), func() (err error) {
		out, err = exec.Command("nft", "-j", script).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", script, err, out)
		}
		return err
	}))
	return out
}

// counted reads the counters of rules by their comments.
func counted(t *testing.T, list []byte) map[string]int {
	t.Helper()
	var said struct {
		Nftables []struct {
			Rule struct {
				Comment string
				Expr    []struct{ Counter *struct{ Packets int } }
			}
		}
	}
	must(t, json.Unmarshal(list, &said))
	all := map[string]int{}
	for _, x := range said.Nftables {
		for _, e := range x.Rule.Expr {
			if e.Counter != nil {
				all[x.Rule.Comment] = e.Counter.Packets
			}
		}
	}
	if len(all) != 4 {
		t.Fatalf("counters of %d rules: %s", len(all), list)
	}
	return all
}
