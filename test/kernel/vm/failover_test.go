package vm

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

// lease: the holder's agent stands still, and so does not hear that the addresses are another node's. Its OVN answers
// for them until the agent's lease ends, and then no more, also when the agent goes on. No datagram has a wrong source,
// on any node; that node's own pods are not answered meanwhile, for nobody tells the successor that they are there.
func (l *kernelLab) lease() {
	before, after := l.nodes[1], l.nodes[0]
	w := l.watched()
	asking, err := traffic.Ask(l.ExternalHosts()[0], egressIPs, 200*time.Millisecond)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(asking.Close)
	own := l.hardware(after)
	l.signal(before, syscall.SIGSTOP)
	l.egressIP("web", egressIPs, after, selected)
	l.eventually("answers of "+after.Name+" alone", func(context.Context) error {
		return onlyAnswers(asking.Since(time.Now().Add(-2*time.Second)), own)
	})
	since := time.Now()
	l.far.isSeenAs(egressIPs, l.outside, sandbox.ClientIPPort)
	l.signal(before, syscall.SIGCONT)
	l.eventually("reports of both nodes", func(context.Context) error { return l.holds(0) })
	if err := onlyAnswers(asking.Since(since), own); err != nil {
		l.t.Error(err)
	}
	l.egressIP("web", egressIPs, before, selected)
	l.eventually("reports of both nodes", func(context.Context) error { return l.holds(1) })
	w.close()
}

// onlyAnswers is nil if a machine has answered for each address, and no other has.
func onlyAnswers(all []traffic.Answer, mac string) error {
	for _, ip := range egressIPs {
		if !slices.ContainsFunc(all, func(a traffic.Answer) bool { return a.IP == ip }) {
			return fmt.Errorf("nobody answers for %s", ip)
		}
	}
	for _, a := range all {
		if a.MAC != mac {
			return fmt.Errorf("%s answers for %s, want %s alone", a.MAC, a.IP, mac)
		}
	}
	return nil
}

// hardware is the hardware address of a node's uplink.
func (l *kernelLab) hardware(n sandbox.Member) string {
	return strings.TrimSpace(l.in(n.Name, "cat", "/sys/class/net/breth0/address"))
}

func (l *kernelLab) signal(n sandbox.Member, s syscall.Signal) {
	l.t.Helper()
	if err := l.SignalProcess(l.t.Context(), n.Name, "egret-node", s); err != nil {
		l.t.Fatal(err)
	}
}

// pair are two addresses of one EgressIP, the first of which is on the first node.
var pair = []netip.Addr{netip.MustParseAddr("172.18.0.80"), netip.MustParseAddr("172.18.0.81")}

// bfd: of two nodes that have an address each, one is cut off, and the status does not change, as while controllers do
// not answer. Pods of the other one go on by their own node's address alone as soon as the tunnel is dead, and by both
// when it is not.
func (l *kernelLab) bfd() {
	labels := map[string]string{"app": "pair"}
	l.egressIPOn("pair", pair, l.nodes, labels)
	p := l.pod("pair", l.nodes[0], labels)
	l.eventually("both addresses", func(ctx context.Context) error { return p.uses(ctx, pair...) })
	if err := l.Partition(l.t.Context(), l.nodes[1].Name, sandbox.FromBoth); err != nil {
		l.t.Fatal(err)
	}
	l.eventually("own node's address alone", func(ctx context.Context) error { return p.uses(ctx, pair[0]) })
	if err := l.Heal(l.t.Context(), l.nodes[1].Name); err != nil {
		l.t.Fatal(err)
	}
	l.eventually("both addresses again", func(ctx context.Context) error { return p.uses(ctx, pair...) })
}

// uses is nil if a pod's connections one after the other are all answered, and are seen as these addresses, each of
// them.
func (p pod) uses(ctx context.Context, want ...netip.Addr) error {
	host := p.c.ExternalHosts()[0].IPs[0]
	seen := map[netip.Addr]int{}
	for range 16 { // of two addresses one is not among them once in 32,768 times
		have, err := p.c.ask(ctx, p.node.Name, netip.AddrPortFrom(host, sandbox.ClientIPPort), "ip", "netns", "exec",
			p.name)
		if err != nil {
			return err
		}
		if !slices.Contains(pair, have) {
			p.c.t.Errorf("pod %s is seen as %s, want one of %s", p.name, have, pair)
		}
		seen[have]++
	}
	for _, a := range pair {
		if slices.Contains(want, a) != (seen[a] > 0) {
			return fmt.Errorf("seen as %v, want %s", seen, want)
		}
	}
	p.c.t.Logf("pod %s is seen as %v", p.name, seen)
	return nil
}
