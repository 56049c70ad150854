package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

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
		pod{name: "other", node: c.nodes[0]}, pod{name: "other2", node: c.nodes[1]})
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
				must(t, n.inside(p, func() error { return r.isSent(make([]byte, size)) }))
				select {
				case d := <-arrived:
					if d.size != size || !slices.Contains(want, d.from) {
						t.Errorf("%d bytes of pod %s arrive at %s as %s, want %d as one of %v", d.size, p, ip, d.from, size,
							want)
					}
				case <-time.After(3 * time.Second):
					t.Errorf("what pod %s sends to %s in fragments does not arrive", p, ip)
				}
			}
		}
	}
}

type arrival struct {
	from netip.Addr
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
	all := make(chan arrival, 100)
	go func() {
		for b := make([]byte, 1<<16); ; {
			size, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			all <- arrival{from.Addr().Unmap(), size}
		}
	}()
	return all
}

// loneFragments has pods send the first halves of datagrams, and waits until OVS has given them up (15 to 20 s) while
// other pods of their nodes, and these, send whole ones.
func loneFragments(t *testing.T, n *namespace) {
	n.c.inOneMode(t)
	var pods []netip.Addr
	for _, ips := range n.ips {
		pods = append(pods, ips...)
	}
	outside := n.countsOutside(t, pods)
	for _, p := range []string{"away", "home"} {
		for i, to := range n.c.hosts[0].IPs {
			from := ofFamily(n.ips[p], to)[0]
			must(t, n.inside(p, func() error { return firstHalves(from, to, 50*(i+1)) }))
		}
	}
	var others []*receiver
	for _, ip := range n.c.hosts[0].IPs {
		others = append(others, receives(t, n.c.hosts[0].Name, netip.AddrPortFrom(ip, 7091)))
	}
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); {
		for _, p := range []string{"other", "other2", "away", "home"} {
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
	for family, left := range outside() {
		if left > 0 {
			t.Errorf("%d packets of %s left with a pod's address", left, family)
		}
	}
}

// countsOutside counts the packets outside that have one of these sources, by family.
func (n *namespace) countsOutside(t *testing.T, sources []netip.Addr) (counts func() map[string]int) {
	t.Helper()
	const table = "bridge e2e_fragments"
	nft := func(script string) (out []byte) {
		must(t, sandbox.InNetns(n.c.FabricNetns(), func() (err error) {
			cmd := exec.Command("nft", "-j", "-f", "-")
			cmd.Stdin = strings.NewReader(script)
			out, err = cmd.Output()
			return err
		}))
		return out
	}
	var rules string
	for i, ip := range []string{"ip", "ip6"} {
		var set []string
		for _, a := range sources {
			if a.Is6() == (i == 1) {
				set = append(set, a.String())
			}
		}
		rules += fmt.Sprintf("%s saddr { %s } counter comment %q; ", ip, strings.Join(set, ", "), ip)
	}
	nft("table " + table + " { chain forward { type filter hook forward priority 0; " + rules + "}; }")
	t.Cleanup(func() { nft("delete table " + table) })
	return func() map[string]int { return counted(t, nft("list table "+table)) }
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
	if len(all) != 2 {
		t.Fatalf("counters of %d families: %s", len(all), list)
	}
	return all
}

// firstHalves sends first fragments of UDP from where it is called.
func firstHalves(from, to netip.Addr, many int) error {
	const size = 1200
	data := make([]byte, size)
	binary.BigEndian.PutUint16(data[0:], 5000)
	binary.BigEndian.PutUint16(data[2:], 7092)
	binary.BigEndian.PutUint16(data[4:], 2*size)
	for id := 1; id <= many; id++ {
		var err error
		if to.Is4() {
			err = sendFirstV4(from, to, id, data)
		} else {
			err = sendFirstV6(from, to, id, data)
		}
		if err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func sendFirstV4(from, to netip.Addr, id int, data []byte) error {
	conn, err := net.ListenPacket("ip4:udp", from.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	raw, err := ipv4.NewRawConn(conn)
	if err != nil {
		return err
	}
	return raw.WriteTo(&ipv4.Header{Version: 4, Len: 20, TotalLen: 20 + len(data), ID: id, Flags: ipv4.MoreFragments,
		TTL: 64, Protocol: unix.IPPROTO_UDP, Src: from.AsSlice(), Dst: to.AsSlice()}, data, nil)
}

// sendFirstV6 writes the header itself, as ipv6(7) has it for IPPROTO_RAW.
func sendFirstV6(from, to netip.Addr, id int, data []byte) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const fragmentHeader, more = 8, 1
	packet := []byte{0x60, 0, 0, 0, 0, 0, unix.IPPROTO_FRAGMENT, 64}
	binary.BigEndian.PutUint16(packet[4:], uint16(fragmentHeader+len(data)))
	packet = append(append(packet, from.AsSlice()...), to.AsSlice()...)
	packet = append(packet, unix.IPPROTO_UDP, 0, 0, more)
	packet = append(binary.BigEndian.AppendUint32(packet, uint32(id)), data...)
	return unix.Sendto(fd, packet, 0, &unix.SockaddrInet6{Addr: to.As16()})
}
