package node

import (
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/world"
)

// underFilter are the pods that the host's leak filter has by a plan.
func underFilter(s *plan.State) []string {
	var out []string
	for e := range s.NFTElems.Rows() {
		if egress.IsLeakFilter(e.Set) {
			out = append(out, e.Key)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestAgentStartFiltersWhomItDid: until the cluster is known, an agent that starts has under the leak filter the pods
// that the kernel has there, as to all destinations or to some, and those that wait for a holder. Where nothing tells
// which these are, it has all; and as soon as the cluster is known, all that have no object.
func TestAgentStartFiltersWhomItDid(t *testing.T) {
	pods := []netip.Addr{compiletest.V4(10, 244, 1, 3), compiletest.V4(10, 244, 1, 4), compiletest.V4(10, 244, 1, 5)}
	paused := compiletest.V4(10, 244, 1, 6)
	everyone := "10.244.1.3 10.244.1.4 10.244.1.5 10.244.1.6"
	whole, some := "egressip-guarded-pods.v4", "egressip/e0/guarded.v4"
	for name, x := range map[string]struct {
		kernel map[string][]string
		want   string
	}{
		"some are": {map[string][]string{whole: {"10.244.1.3"}, "egressip-guarded-pods.v6": nil, some: {"10.244.1.4"},
			"egressip/e0/pods.v4": {"10.244.1.5"}}, "10.244.1.3 10.244.1.4 10.244.1.6"},
		"nobody is":       {map[string][]string{whole: nil, "egressip-guarded-pods.v6": nil}, "10.244.1.6"},
		"there is no set": {nil, everyone},
		"one is missing":  {map[string][]string{whole: nil}, everyone},
	} {
		t.Run(name, func(t *testing.T) {
			former := plan.New()
			for set, elems := range x.kernel {
				key := map[bool]string{true: "ipv6_addr", false: "ipv4_addr"}[strings.HasSuffix(set, "v6")]
				former.NFTSets.Put(plan.Owner{}, plan.NFTSet{Name: set}, plan.NFTSetSpec{Key: key})
				for _, e := range elems {
					former.NFTElems.Put(plan.Owner{}, plan.NFTElem{Set: set, Key: e}, "")
				}
			}
			kernel := nft.NewFake()
			if err := kernel.Grow(t.Context(), former); err != nil {
				t.Fatal(err)
			}
			c := compiletest.Config(world.LocalGateway)
			filter := readFilter(t.Context(), kernel.Plane, c, slog.New(slog.DiscardHandler))
			w := world.New("n1", c)
			for _, ip := range append(slices.Clone(pods), paused) {
				w.SetAttachment(filter.adoptAttachment(world.Attachment{Namespace: "ns", Name: ip.String(),
					UID: ip.String(), IPs: []netip.Addr{ip}, EgressPaused: ip == paused}))
			}
			if have := strings.Join(underFilter(compile.Full(w, all.Features())), " "); have != x.want {
				t.Errorf("before the cluster is known: %s, want %s", have, x.want)
			}
			if filterOrphans(w); strings.Join(underFilter(compile.Full(w, all.Features())), " ") != everyone {
				t.Errorf("then: %v", maps.Collect(compile.Full(w, all.Features()).NFTElems.Rows()))
			}
		})
	}
}
