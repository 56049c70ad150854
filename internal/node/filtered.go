package node

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/world"
)

// formerFilter is which pods were under the host's leak filter when the agent started. The kernel holds that whoever
// has stopped.
type formerFilter struct {
	known bool // else nothing tells, as after a boot
	pods  map[netip.Addr]bool
}

// readFilter asks the kernel, before anything is written there.
func readFilter(ctx context.Context, p *nft.Plane, c *world.Config, log *slog.Logger) formerFilter {
	sets, err := p.Sets(ctx, egress.IsLeakFilter)
	if err != nil {
		log.Warn("could not read which pods were under the leak filter; all are, until the cluster is known",
			"error", err)
		return formerFilter{}
	}
	f := formerFilter{known: true, pods: map[netip.Addr]bool{}}
	for _, family := range c.Families() {
		if _, is := sets[egress.FilteredPods(family)]; !is {
			f.known = false
		}
	}
	for _, pods := range sets {
		for _, pod := range pods {
			ip, err := netip.ParseAddr(pod)
			if err != nil {
				return formerFilter{}
			}
			f.pods[ip] = true
		}
	}
	return f
}

// adoptAttachment returns an attachment that a previous process left, as this process begins with it.
func (f formerFilter) adoptAttachment(at world.Attachment) *world.Attachment {
	at.Unfiltered = f.known && !at.EgressPaused &&
		!slices.ContainsFunc(at.IPs, func(ip netip.Addr) bool { return f.pods[ip] })
	return &at
}

// filterOrphans ends what was adopted, now that the cluster is known: a pod without an object is an orphan.
func filterOrphans(w *world.World) {
	for _, key := range w.Attachments() {
		if at := *w.Attachment(key); at.Unfiltered {
			at.Unfiltered = false
			w.SetAttachment(&at)
		}
	}
}

func attachmentOf(p cniserver.PodPort) *world.Attachment {
	at := &world.Attachment{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, HostIface: p.HostIface, MAC: p.MAC, IPs: p.IPs,
		EgressPaused: p.EgressPaused,
	}
	if i := p.Primary; i != nil && len(i.IPs) > 0 {
		at.Further = []world.Interface{{Network: i.Network, MAC: i.MAC, IPs: i.IPs}}
	}
	return at
}
