package removal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/forward"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
)

// lab is a node with something in each of its targets, all of them in memory. failAt is the step that fails, from 1.
type lab struct {
	t         *testing.T
	db        *ovs.Fake
	rules     *nft.Fake
	routes    *route.FakeHost
	chains    *forward.Fake
	links     int  // of pods
	returned  bool // the uplink
	deadLinks bool // of an ovs-vswitchd that does not run
	restored  bool
	step      int
	failAt    int
	wrong     []string
}

// rows are some of each target's.
func rows() *plan.State {
	s, o, addr := plan.New(), plan.Owner{}, netip.MustParsePrefix("10.244.1.2/24")
	s.Ports.Put(o, plan.Port{Bridge: plan.IntegrationBridge, Name: "ovn-k8s-mp0"}, plan.PortSpec{Type: "internal"})
	s.OVSIDs.Put(o, "ovn-remote", "unix:/run/ovn/ovnsb_db.sock")
	s.Addrs.Put(o, plan.Addr{Dev: "ovn-k8s-mp0", Prefix: addr}, plan.AddrSpec{})
	s.Routes.Put(o, plan.RouteKey{Table: plan.MainTable, Dst: netip.MustParsePrefix("10.244.0.0/16")},
		plan.Route{Dev: "ovn-k8s-mp0"})
	s.Rules.Put(o, plan.Rule{Priority: 5998, Table: 284279, In: "breth0"}, plan.None{})
	uplink := plan.NFTChain{Family: "netdev", Name: "uplink"}
	s.NFTChains.Put(o, uplink, plan.NFTChainSpec{Type: "filter", Hook: "ingress", Priority: "0", Device: "eth0",
		Policy: "drop"})
	s.Accepts.Put(o, plan.Accept{Dev: "ovn-k8s-mp0"}, plan.None{})
	return s
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, db: ovs.NewFake(plan.IntegrationBridge, plan.LivenessBridge, "breth0"), rules: nft.NewFake(),
		routes: route.NewFake().FakeHost, chains: &forward.Fake{}, links: 3, deadLinks: true}
	for _, p := range []plane.Plane{l.db, l.rules, l.routes.Process(), forward.New(l.chains)} {
		if err := p.Grow(t.Context(), rows()); err != nil {
			t.Fatal(err)
		}
	}
	l.routes.Addrs[plan.Addr{Dev: "breth0", Prefix: netip.MustParsePrefix("172.18.0.2/24")}] = route.FakeAddr{}
	return l
}

var errKilled = errors.New("killed")

// takeStep is called before each change.
func (l *lab) takeStep() error {
	if l.step++; l.step == l.failAt {
		return errKilled
	}
	return nil
}

// process is a new process on the node.
func (l *lab) process() *host {
	return &host{
		uplink: ovs.Uplink{Bridge: "breth0", Device: "eth0"}, switches: steppedSwitches{l}, vswitchd: true,
		settings: stepped{l.db, l}, routes: stepped{l.routes.Process(), l}, rules: stepped{l.rules, l},
		accepts: stepped{forward.New(l.chains), l},
		podLinks: func() (int, error) {
			l.links = 0
			return 3, l.takeStep()
		},
		returnUplink: func() error {
			if l.rules.NetDev.Table != nil {
				l.wrong = append(l.wrong, "the uplink moves while a rule drops what the kernel receives by it")
			}
			if err := l.takeStep(); err != nil {
				return err
			}
			l.returned = true
			return nil
		},
		deleteLinks: func(context.Context) error {
			l.deadLinks = false
			return l.takeStep()
		},
		restoreSysctls: func() error {
			err := l.takeStep()
			l.restored = l.restored || err == nil
			return err
		},
	}
}

type stepped struct {
	plane.Plane
	lab *lab
}

func (s stepped) Shrink(ctx context.Context, want *plan.State) error {
	if s.lab.links > 0 {
		s.lab.wrong = append(s.lab.wrong, s.Name()+" goes while pods have links")
	}
	if err := s.lab.takeStep(); err != nil {
		return err
	}
	return s.Plane.Shrink(ctx, want)
}

type steppedSwitches struct{ lab *lab }

func (s steppedSwitches) RemoveBridges(ctx context.Context, uplink string, names ...string) error {
	if slices.Contains(names, "breth0") && !s.lab.returned {
		s.lab.wrong = append(s.lab.wrong, "the bridge goes while it has the uplink's addresses")
	}
	if err := s.lab.takeStep(); err != nil {
		return err
	}
	return s.lab.db.RemoveBridges(ctx, uplink, names...)
}

func (s steppedSwitches) AwaitSwitchd(ctx context.Context) error { return s.lab.db.AwaitSwitchd(ctx) }

// state is what the node still has of Egret's.
func (l *lab) state() string {
	l.t.Helper()
	var ours []string
	for k, a := range l.routes.Addrs {
		if a.Ours {
			ours = append(ours, fmt.Sprint(k))
		}
	}
	for k := range l.routes.Routes {
		ours = append(ours, k.String())
	}
	for k := range l.routes.Rules {
		ours = append(ours, k.String())
	}
	for _, r := range l.chains.Rules {
		ours = append(ours, r...)
	}
	if l.rules.NetDev.Table != nil || l.rules.INet.Table != nil {
		ours = append(ours, "nft table")
	}
	ours = append(append(ours, l.db.BridgeNames()...), strings.Fields(l.db.Held().Text())...)
	if !l.returned || !l.restored || l.links > 0 {
		ours = append(ours, fmt.Sprintf("returned %t, restored %t, %d links", l.returned, l.restored, l.links))
	}
	return strings.Join(ours, "\n")
}

func (l *lab) remove() error {
	left, err := l.process().removeNetwork(l.t.Context(), slog.New(slog.DiscardHandler))
	return errors.Join(left, err)
}

// TestRemoveNetwork: it may fail at each of its steps, and finishes when it is run again. What is not Egret's stays.
func TestRemoveNetwork(t *testing.T) {
	for failAt := 0; ; failAt++ {
		l := newLab(t)
		l.failAt = failAt
		err := l.remove()
		if (failAt == 0 || failAt > l.step) != (err == nil) {
			t.Errorf("step %d of %d fails: %v", failAt, l.step, err)
		}
		if failAt > l.step {
			break
		}
		for range 2 {
			if err := l.remove(); err != nil {
				t.Errorf("after step %d had failed: %v", failAt, err)
			}
		}
		if left := l.state(); left != "" || len(l.routes.Addrs) != 1 {
			t.Errorf("after step %d had failed there are still\n%s\nand addresses %v", failAt, left, l.routes.Addrs)
		}
		for _, w := range l.wrong {
			t.Errorf("step %d fails: %s", failAt, w)
		}
		if failAt == 0 && !l.deadLinks {
			t.Error("links are deleted that ovs-vswitchd has")
		}
	}
}

// TestRemoveNetworkWithoutOVS: the node has its network back whatever of Open vSwitch runs, and the error says if its
// database needs another run.
func TestRemoveNetworkWithoutOVS(t *testing.T) {
	for _, c := range []struct{ database, vswitchd, ours, done bool }{
		{database: true, done: true}, {vswitchd: true}, {vswitchd: true, ours: true}, {}, {ours: true, done: true},
	} {
		l := newLab(t)
		h := l.process()
		if h.vswitchd, h.ovsIsOurs = c.vswitchd, c.ours; !c.database {
			h.switches, h.settings = nil, nil
		}
		left, err := h.removeNetwork(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil || (left == nil) != c.done || left != nil && !errors.Is(left, errNoDatabase) {
			t.Errorf("%+v: %v, %v", c, left, err)
		}
		if !l.returned || l.deadLinks || !l.restored || len(l.routes.Routes) > 0 {
			t.Errorf("%+v: the node has not its network back", c)
		}
	}
}
