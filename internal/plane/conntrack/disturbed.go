package conntrack

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// restored is how long after somebody has taken them away rules are back for certain.
const restored = 6 * time.Second

// Disturbed says that somebody has taken rules away that translate, which are back by now, or soon: `nft flush ruleset`
// as Debian's nftables.service has it. What pods began meanwhile has no translation, and gets none as long as they go
// on sending: it is ended when connections are looked at in the next few seconds. A connection that is rightly
// untranslated loses nothing by that, for its next packet makes it anew (of TCP, with nf_conntrack_tcp_loose as the
// kernel has it).
func (p *Plane) Disturbed() {
	p.mu.Lock()
	p.disturbed = time.Now().Add(restored)
	p.mu.Unlock()
	p.recheck.beginFor(lookAgain(), routerSources(p.own())...)
}

// endUntranslated ends what pods have begun to others than pods, and was not translated, by portions while it is its
// turn.
func (p *Plane) endUntranslated(ctx context.Context) error {
	if !time.Now().Before(p.disturbed) {
		return nil
	}
	own, end := p.own(), time.Now().Add(p.turn)
	for _, router := range slices.Sorted(maps.Keys(own)) {
		zone, ok := p.zones.CTZone(ctx, plan.SNATZone(router))
		if !ok {
			continue
		}
		entries, err := p.target.Dump(ctx, zone)
		if err != nil {
			return fmt.Errorf("look at untranslated connections of %s: %w", router, err)
		}
		bare := slices.DeleteFunc(entries, func(e Entry) bool { return !own[router].isUntranslated(e) })
		if len(bare) > 0 {
			p.log.Info("connections that were begun without rules are ended", "router", router, "count", len(bare))
		}
		for len(bare) > 0 {
			n := min(portion, len(bare))
			if err := p.target.Flush(ctx, bare[:n]...); err != nil {
				return fmt.Errorf("end untranslated connections of %s: %w", router, err)
			}
			p.ended += uint64(n)
			if bare = bare[n:]; len(bare) > 0 && !time.Now().Before(end) {
				return plane.ErrUnfinished
			}
		}
	}
	return nil
}

// isUntranslated says whether a pod has begun a connection to others than pods, and nothing of it is translated. What
// somebody else on the host gives another destination, as proxies and host ports do, is theirs.
func (o Own) isUntranslated(e Entry) bool {
	pods := func(a netip.Addr) bool {
		return slices.ContainsFunc(o.Pods, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return !e.Translated() && e.Reply.Src == e.Orig.Dst && pods(e.Orig.Src) && !pods(e.Orig.Dst)
}
