package vm

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/sandbox"
)

const localPort = 30506

// byLink: a host outside that comes to a node port by another link than the primary one is seen as it is, with policy
// Local, by a pod whose own connections leave with an egress IP.
func (l *kernelLab) byLink() {
	serveInPod(l.far)
	l.dual(service{name: "by-link", number: 40, nodePort: localPort, local: true, node: l.far.node, ips: l.far.ips(),
		port: sandbox.ClientIPPort})
	client := l.ExternalHosts()[0]
	for _, node := range l.far.node.Secondary[0] {
		at := netip.AddrPortFrom(node, localPort)
		var seen netip.Addr
		l.eventually(fmt.Sprintf("an answer to %s by %s", client.Name, at), func(ctx context.Context) (err error) {
			seen, err = l.ask(ctx, client.Name, at)
			return err
		})
		if !slices.Contains(client.Secondary[0], seen) {
			l.t.Errorf("the pod sees %s by %s, want one of %s", seen, at, client.Secondary[0])
		}
	}
}
