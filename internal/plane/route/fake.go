package route

import (
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

// Fake is the plane on a kernel in memory. Tests may read and change what it holds between calls.
type Fake struct {
	*Plane
	*FakeHost
}

// FakeHost is what a Fake's kernel holds. Up are the links that were set up.
type FakeHost struct {
	Up      map[string]bool
	Addrs   map[plan.Addr]FakeAddr
	Routes  map[plan.RouteKey]FakeRoute
	Rules   map[plan.Rule]bool // ours?
	Sysctls map[string]string
	missing []string
}

// FakeAddr is an address and whether it carries our mark.
type FakeAddr struct {
	Spec plan.AddrSpec
	Ours bool
}

// FakeRoute is a route and whether it carries our mark.
type FakeRoute struct {
	Route plan.Route
	Ours  bool
}

// NewFake makes a fake on which every link and every sysctl exists but those named.
func NewFake(missing ...string) *Fake {
	h := &FakeHost{Up: map[string]bool{}, Addrs: map[plan.Addr]FakeAddr{}, Routes: map[plan.RouteKey]FakeRoute{},
		Rules: map[plan.Rule]bool{}, Sysctls: map[string]string{}, missing: missing}
	return h.Process()
}

// Process is a new plane on the same host, as after a restart.
func (h *FakeHost) Process() *Fake { return &Fake{newPlane(fakeStack{h}), h} }

type fakeStack struct{ *FakeHost }

func (f fakeStack) forgetAll() {}

func (f fakeStack) listLinks() (links, error) {
	return func(dev string) (bool, bool) { return f.Up[dev], !slices.Contains(f.missing, dev) }, nil
}

func (f fakeStack) setUp(dev string) error {
	f.Up[dev] = true
	return nil
}

func (f fakeStack) listAddrs() (map[plan.Addr]heldAddr, error) {
	have := map[plan.Addr]heldAddr{}
	for k, a := range f.Addrs {
		have[k] = heldAddr{spec: a.Spec, ours: a.Ours}
	}
	return have, nil
}

func (f fakeStack) putAddr(k plan.Addr, spec plan.AddrSpec, there bool) error {
	if _, held := f.Addrs[k]; held && !there {
		return unix.EEXIST
	}
	f.Addrs[k] = FakeAddr{seenSpec(k, spec), true}
	return nil
}

func (f fakeStack) delAddr(k plan.Addr) error {
	delete(f.Addrs, k)
	return nil
}

func (f fakeStack) listRoutes() (map[plan.RouteKey][]heldRoute, error) {
	have := map[plan.RouteKey][]heldRoute{}
	for k, r := range f.Routes {
		have[k] = []heldRoute{{key: k, route: r.Route, metric: ourMetric(k), ours: r.Ours, plain: true}}
	}
	return have, nil
}

// putRoute wants a gateway to be on a link, as the kernel does.
func (f fakeStack) putRoute(k plan.RouteKey, r plan.Route, there bool) error {
	if _, held := f.Routes[k]; held && !there {
		return unix.EEXIST
	}
	if r.Via.IsValid() && !r.OnLink && !f.onLink(r) {
		return unix.ENETUNREACH
	}
	f.Routes[k] = FakeRoute{r, true}
	return nil
}

func (f fakeStack) onLink(r plan.Route) bool {
	for k := range f.Addrs {
		if k.Dev == r.Dev && k.Prefix.Contains(r.Via) {
			return true
		}
	}
	for k, h := range f.Routes {
		if h.Route.Dev == r.Dev && !h.Route.Via.IsValid() && k.Dst.Contains(r.Via) {
			return true
		}
	}
	return r.Via.IsLinkLocalUnicast()
}

func (f fakeStack) delRoute(r heldRoute) error {
	delete(f.Routes, r.key)
	return nil
}

func (f fakeStack) listRules() (map[plan.Rule]bool, error) { return maps.Clone(f.Rules), nil }

func (f fakeStack) addRule(r plan.Rule) error {
	if err := checkRule(r); err != nil {
		return err
	}
	f.Rules[r] = true
	return nil
}

func (f fakeStack) delRule(r plan.Rule) error {
	delete(f.Rules, r)
	return nil
}

func (f fakeStack) readSysctl(key string) (string, error) {
	if slices.ContainsFunc(f.missing, func(m string) bool { return m == key || strings.Contains(key, "."+m+".") }) {
		return "", fs.ErrNotExist
	}
	return f.Sysctls[key], nil
}

// ipv6Links is part of stack: those that a test has given a setting of IPv6.
func (f fakeStack) ipv6Links() (links []string, err error) {
	for key := range f.Sysctls {
		if link, is := strings.CutPrefix(key, "net.ipv6.conf."); is && strings.HasSuffix(link, ".accept_ra") {
			links = append(links, strings.TrimSuffix(link, ".accept_ra"))
		}
	}
	return links, nil
}

func (f fakeStack) setSysctl(key, value string) error {
	f.Sysctls[key] = value
	return nil
}
