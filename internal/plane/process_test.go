package plane_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/announce"
	"github.com/egret-net/egret/internal/plane/conntrack"
	"github.com/egret-net/egret/internal/plane/forward"
	"github.com/egret-net/egret/internal/plane/health"
	"github.com/egret-net/egret/internal/plane/nft"
)

// process is one agent's planes, as internal/node opens them, each behind something that can fail.
type process struct {
	planes []*troubled
	last   *plan.State // what went through whole
	stop   func()
}

func (p *process) all() []plane.Plane {
	var out []plane.Plane
	for _, t := range p.planes {
		out = append(out, t)
	}
	return out
}

// start opens all planes on what former processes left.
func (s *targets) start() *process {
	ctx, cancel := context.WithCancel(context.Background())
	device := func(string) (int, bool) { return 1, true }
	own := func() map[string]conntrack.Own { return map[string]conntrack.Own{router: ownSources()} }
	quiet := slog.New(slog.DiscardHandler)
	s.announced = len(s.link.Sent())
	p := &process{last: plan.New(), stop: func() {
		cancel()
		for len(s.health.Held()) > 0 { // the kernel closes the sockets of a process before another can be there
			time.Sleep(time.Microsecond)
		}
	}}
	for _, x := range []plane.Plane{
		s.ovs, s.host.Process(), nft.New(s.inet, s.netdev, device), forward.New(s.tables), s.flow, s.sb, s.nb,
		announce.New(ctx, s.link, quiet), conntrack.New(ctx, s.connections, s.connections, own, quiet),
		conntrack.NewDatagrams(ctx, s.connections, quiet), conntrack.NewBalanced(ctx, s.connections, quiet),
		health.New(ctx, s.health),
	} {
		p.planes = append(p.planes, &troubled{Plane: x, process: p})
	}
	return p
}

const router = "GR_n1"

func ownSources() conntrack.Own {
	w := compiletest.Config("")
	o := conntrack.Own{Addrs: compiletest.Host("n1").Addrs}
	for _, s := range w.ClusterSubnets {
		o.Pods = append(o.Pods, s.CIDR)
	}
	return o
}

// troubled is a plane whose target may go away in the middle of an apply.
type troubled struct {
	plane.Plane
	process *process
	trouble *trouble
}

// trouble ends a call after part of its work: rows are done, or not, by a hash with a seed. A real target's transaction
// is whole or not at all; several of them, or rows of a kernel, are not.
type trouble struct {
	shrink bool // while shrinking; else while growing
	seed   uint8
	share  uint8 // of 255
}

var errTrouble = errors.New("the target went away")

func drawTrouble(t *rapid.T) *trouble {
	return &trouble{rapid.Bool().Draw(t, "while shrinking"), rapid.Uint8().Draw(t, "seed"), rapid.Uint8().Draw(t,
		"share")}
}

func (x *trouble) does(key string) bool {
	h := fnv.New32a()
	fmt.Fprint(h, x.seed, key)
	return uint8(h.Sum32()) < x.share
}

// Grow does some of what it should, and of the databases, whose Grow is a transaction, everything or nothing.
func (p *troubled) Grow(ctx context.Context, want *plan.State) error {
	x := p.trouble
	if x == nil || x.shrink {
		return p.Plane.Grow(ctx, want)
	}
	switch {
	case p.Name() != "nb" && p.Name() != "sb":
		part := plan.New()
		add(part, want, x.does)
		_ = p.Plane.Grow(ctx, part)
	case x.does("commit"):
		_ = p.Plane.Grow(ctx, want) // the answer is lost
	}
	return errTrouble
}

// Shrink removes some of what it should.
func (p *troubled) Shrink(ctx context.Context, want *plan.State) error {
	x := p.trouble
	if x == nil || !x.shrink {
		return p.Plane.Shrink(ctx, want)
	}
	more := snapshot(want)
	add(more, p.process.last, x.does)
	_ = p.Plane.Shrink(ctx, more)
	return errTrouble
}

func snapshot(s *plan.State) *plan.State {
	out := plan.New()
	add(out, s, func(string) bool { return true })
	return out
}

// add puts those rows of from into to whose keys are chosen and not there yet.
func add(to, from *plan.State, chosen func(string) bool) {
	pick(to.NB, from.NB, chosen)
	pick(to.SB, from.SB, chosen)
	pick(to.SetElems, from.SetElems, chosen)
	pick(to.OVSIDs, from.OVSIDs, chosen)
	pick(to.Ports, from.Ports, chosen)
	pick(to.Addrs, from.Addrs, chosen)
	pick(to.Routes, from.Routes, chosen)
	pick(to.Rules, from.Rules, chosen)
	pick(to.Sysctls, from.Sysctls, chosen)
	pick(to.NFTChains, from.NFTChains, chosen)
	pick(to.NFTRules, from.NFTRules, chosen)
	pick(to.NFTSets, from.NFTSets, chosen)
	pick(to.NFTElems, from.NFTElems, chosen)
	pick(to.Accepts, from.Accepts, chosen)
	pick(to.Flows, from.Flows, chosen)
	pick(to.Announcements, from.Announcements, chosen)
	pick(to.Sources, from.Sources, chosen)
	pick(to.Destinations, from.Destinations, chosen)
	pick(to.SourceExempt, from.SourceExempt, chosen)
	pick(to.Masquerades, from.Masquerades, chosen)
	pick(to.Datagrams, from.Datagrams, chosen)
	pick(to.HealthChecks, from.HealthChecks, chosen)
}

func pick[K comparable, V any](to, from plan.Table[K, V], chosen func(string) bool) {
	for k, v := range from.Rows() {
		if _, there := to[k]; !there && chosen(fmt.Sprint(k)) {
			to.Put(from.Owner(k), k, v)
		}
	}
}

// connection is one that a pod may have had, by whatever rule there was.
func connection(t *rapid.T) conntrack.Entry {
	i := rapid.IntRange(0, 5).Draw(t, "pod")
	f := rapid.IntRange(0, 1).Draw(t, "family")
	sources := append([]netip.Addr{compiletest.Host("n1").Addrs[f], compiletest.PodIPs(i, 1)[f]},
		compiletest.EgressAddr(rapid.IntRange(0, 7).Draw(t, "as"))[f])
	to := append([]netip.Addr{compiletest.Node(2).HostAddrs[f]}, compiletest.EgressAddr(200)[f])
	pod, dst := compiletest.PodIPs(i, rapid.IntRange(1, 3).Draw(t, "of"))[f], rapid.SampledFrom(to).Draw(t, "to")
	port := rapid.Uint16().Draw(t, "port")
	return conntrack.Entry{
		Proto: 6, Zone: zone, Orig: conntrack.Tuple{Src: pod, Dst: dst, SrcPort: port, DstPort: 80},
		Reply: conntrack.Tuple{Src: dst, Dst: rapid.SampledFrom(sources).Draw(t, "source"), SrcPort: 80, DstPort: port},
	}
}
