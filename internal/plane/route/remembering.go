package route

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// remembering is a stack that is read once, and again when somebody else has changed it: reading takes longer than
// everything that one egress IP more needs. Of its own changes it remembers those of routes; after others it reads.
type remembering struct {
	stack
	heard *heard

	knownLinks  links // each nil while it is not known
	knownAddrs  map[plan.Addr]heldAddr
	knownRoutes map[plan.RouteKey][]heldRoute
	knownRules  map[plan.Rule]bool
	judged      bool // knownAddrs say which are severed
}

func (r *remembering) forgetAll() {
	r.knownLinks, r.knownAddrs, r.knownRoutes, r.knownRules, r.judged = nil, nil, nil, nil, false
}

// readOrKnown is what is remembered, if nobody has changed anything since, or what read gives.
func readOrKnown[T any](r *remembering, at *T, isKnown func(T) bool, read func() (T, error)) (T, error) {
	if r.heard.drainOthers() {
		r.forgetAll()
	}
	if isKnown(*at) {
		return *at, nil
	}
	now, err := read()
	if err == nil {
		*at = now
	}
	return now, err
}

func (r *remembering) listLinks() (links, error) {
	return readOrKnown(r, &r.knownLinks, func(l links) bool { return l != nil }, r.stack.listLinks)
}

// listAddrs also says which addresses are severed, if nobody changed anything while all was read. After a change there
// is another round.
func (r *remembering) listAddrs() (map[plan.Addr]heldAddr, error) {
	links, err := r.listLinks()
	if err != nil {
		return nil, err
	}
	routes, err := r.listRoutes()
	if err != nil {
		return nil, err
	}
	have, err := readOrKnown(r, &r.knownAddrs, func(m map[plan.Addr]heldAddr) bool { return m != nil },
		r.stack.listAddrs)
	if err != nil || r.judged {
		return have, err
	}
	if r.heard.drainOthers() {
		r.forgetAll()
		return have, nil
	}
	if r.judged = r.knownRoutes != nil; r.judged {
		markSevered(have, links, routes)
	}
	return have, nil
}

// way is a destination and the link that a route of any table leads there by.
type way struct {
	dst netip.Prefix
	dev string
}

// markSevered notes the addresses without the routes that the kernel made of them: to the address itself, and to its
// subnet. A link that is down has no routes. Of
// IPv6 the kernel makes the first of the two some time after it has added the address.
func markSevered(have map[plan.Addr]heldAddr, links links, routes map[plan.RouteKey][]heldRoute) {
	ways := map[way]bool{}
	for k, list := range routes {
		for _, h := range list {
			ways[way{k.Dst, h.route.Dev}] = true
		}
	}
	for k, h := range have {
		ip := k.Prefix.Addr()
		up, _ := links(k.Dev)
		if h.severed = up && (!ways[way{k.Prefix.Masked(), k.Dev}] ||
			ip.Is4() && !ways[way{netip.PrefixFrom(ip, ip.BitLen()), k.Dev}]); h.severed {
			have[k] = h
		}
	}
}

func (r *remembering) listRoutes() (map[plan.RouteKey][]heldRoute, error) {
	isKnown := func(m map[plan.RouteKey][]heldRoute) bool { return m != nil }
	return readOrKnown(r, &r.knownRoutes, isKnown, r.stack.listRoutes)
}

func (r *remembering) listRules() (map[plan.Rule]bool, error) {
	return readOrKnown(r, &r.knownRules, func(m map[plan.Rule]bool) bool { return m != nil }, r.stack.listRules)
}

func (r *remembering) setUp(dev string) error {
	defer r.forgetAll()
	return r.stack.setUp(dev)
}

// putAddr makes the kernel add routes, too.
func (r *remembering) putAddr(k plan.Addr, spec plan.AddrSpec, there bool) error {
	defer r.forgetAll()
	return r.stack.putAddr(k, spec, there)
}

func (r *remembering) delAddr(k plan.Addr) error {
	defer r.forgetAll()
	return r.stack.delAddr(k)
}

func (r *remembering) putRoute(k plan.RouteKey, route plan.Route, there bool) error {
	if err := r.stack.putRoute(k, route, there); err != nil {
		r.forgetAll()
		return err
	}
	if r.knownRoutes != nil {
		r.knownRoutes[k] = append(r.withoutOurs(k), heldRoute{key: k, route: route, metric: ourMetric(k), ours: true,
			plain: true})
	}
	return nil
}

func (r *remembering) delRoute(h heldRoute) error {
	others, err := r.heard.deleteRoute(h.key, func() error { return r.stack.delRoute(h) })
	if err != nil || others || h.metric != ourMetric(h.key) || r.knownRoutes == nil {
		r.forgetAll()
		return err
	}
	if r.knownRoutes[h.key] = r.withoutOurs(h.key); len(r.knownRoutes[h.key]) == 0 {
		delete(r.knownRoutes, h.key)
	}
	return nil
}

// withoutOurs are the routes for a key but the one that the plane makes. A caller that has the previous list may go on
// with it.
func (r *remembering) withoutOurs(k plan.RouteKey) []heldRoute {
	return slices.DeleteFunc(slices.Clone(r.knownRoutes[k]), func(h heldRoute) bool {
		return h.ours && h.metric == ourMetric(k)
	})
}

func (r *remembering) addRule(k plan.Rule) error {
	defer r.forgetAll()
	return r.stack.addRule(k)
}

func (r *remembering) delRule(k plan.Rule) error {
	defer r.forgetAll()
	return r.stack.delRule(k)
}
