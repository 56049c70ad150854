package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
)

// restarts: programs of the data plane are killed on both nodes, one after the other. What is begun then leaves with
// the same sources, or waits; and what goes on does.
func (l *kernelLab) restarts() {
	w := l.watched()
	for _, process := range []string{"egret-node", "ovs-vswitchd", "ovn-controller", "ovn-northd"} {
		for _, n := range l.nodes {
			if err := l.KillProcess(l.t.Context(), n.Name, process); err != nil {
				l.t.Fatal(err)
			}
		}
		l.t.Log(process + " is killed")
		l.sources()
		w.flowing()
	}
	w.close()
}

// moves: the addresses go to the other node, and back.
func (l *kernelLab) moves() {
	w := l.watched()
	for _, holder := range []int{0, 1} {
		l.egressIP("web", egressIPs, l.nodes[holder], selected)
		l.t.Log(l.nodes[holder].Name + " is to hold the addresses")
		l.sources()
		l.eventually("reports of both nodes", func(context.Context) error { return l.holds(holder) })
		w.flowing()
	}
	w.close()
}

// holds is nil if one of the nodes reports that it holds the addresses, and no other does. One may hold others, of
// another part's EgressIP.
func (l *kernelLab) holds(holder int) error {
	for i, n := range l.nodes {
		said := l.api.recorded("/apis/egret.k8s.ovn.org/v1/egressnodes/" + n.Name)
		var e egretv1.EgressNode
		if err := json.Unmarshal([]byte(said), &e); err != nil {
			return fmt.Errorf("%s says %s: %w", n.Name, said, err)
		}
		have := 0
		for _, h := range e.Status.Holding {
			if ip, err := netip.ParseAddr(h.IP); err == nil && slices.Contains(egressIPs, ip) {
				have++
			}
		}
		if want := map[bool]int{true: len(egressIPs)}[i == holder]; have != want {
			return fmt.Errorf("%s says that it holds %+v, want %d of %s", n.Name, e.Status.Holding, want, egressIPs)
		}
	}
	return nil
}
