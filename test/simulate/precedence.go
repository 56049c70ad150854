package simulate

import (
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// isUnclaimed reports whether no object need have a claim that binds, so that the node's address may be right.
func (c combination) isUnclaimed() bool {
	for name := range c.egressIPs {
		if c.mustClaim(name) {
			return false
		}
	}
	return !c.mustBeServed()
}

// comesAfterOthers reports whether another object has what an EgressIP claims, whichever versions a node has followed.
// Of two others the first may keep the second from its claim: a story in which three EgressIPs of different
// destinations select one pod is judged too strictly.
func (c combination) comesAfterOthers(name string) bool {
	if c.mustBeServed() {
		return true
	}
	for other := range c.egressIPs {
		if other != name && c.mustClaim(other) && !c.mayPrecede(name, other) {
			return true
		}
	}
	return false
}

// mustClaim reports whether an EgressIP selects the pod, binds and has the destination by all its versions.
func (c combination) mustClaim(name string) bool {
	return always(within(c.egressIPs[name], c.since, nil), func(e *world.EgressIP) bool {
		return c.selects(e) && c.binds(e) && !c.mayOmit(e)
	})
}

func (c combination) binds(e *world.EgressIP) bool {
	f := world.FamilyOf(c.dst)
	return e.InForce[f] || e.DropWhenUnassigned && e.Asks(f)
}

// mayPrecede reports whether a version of an EgressIP binds and comes before a version of another one.
func (c combination) mayPrecede(name, other string) bool {
	others := within(c.egressIPs[other], c.since, nil)
	return slices.ContainsFunc(within(c.egressIPs[name], c.since, nil), func(e *world.EgressIP) bool {
		return e != nil && c.binds(e) && slices.ContainsFunc(others, func(o *world.EgressIP) bool {
			return world.ByPrecedence(e, o) < 0
		})
	})
}

// mustBeServed reports whether an EgressService has a claim that binds, and no EgressIP may keep it from that.
func (c combination) mustBeServed() bool {
	for _, all := range c.egressIPs {
		if slices.ContainsFunc(within(all, c.since, nil), c.forbids) {
			return false
		}
	}
	for name := range c.services {
		if c.mustServe(name) {
			return true
		}
	}
	return false
}

// forbids reports whether an EgressIP forbids EgressServices for the pod.
func (c combination) forbids(e *world.EgressIP) bool {
	return c.selects(e) && e.NeverOverridden && e.Asks(world.FamilyOf(c.dst))
}

// isForbidden reports whether an EgressIP forbids EgressServices by all its versions.
func (c combination) isForbidden() bool {
	for _, all := range c.egressIPs {
		if always(within(all, c.since, nil), func(e *world.EgressIP) bool { return c.forbids(e) && !c.mayOmit(e) }) {
			return true
		}
	}
	return false
}

// mustServe reports whether the EgressService of a name binds for the pod by all versions, also of its Service.
func (c combination) mustServe(name string) bool {
	f, services := world.FamilyOf(c.dst), within(c.services[name], c.since, nil)
	return always(within(c.served[name], c.since, nil), func(e *world.EgressService) bool {
		return e != nil && always(services, func(s *world.Service) bool {
			return c.isBehind(s) && (s.LoadBalancer && e.InForce[f] || e.DropWhenUnassigned && e.Asks(s, f))
		})
	})
}

// comesAfterServices reports whether an older EgressService has what the one of a name claims.
func (c combination) comesAfterServices(name string) bool {
	versions := within(c.served[name], c.since, nil)
	for other, all := range c.served {
		if other != name && c.mustServe(other) && always(within(all, c.since, nil), func(o *world.EgressService) bool {
			return always(versions, func(s *world.EgressService) bool { return s == nil || o.ByAge(s) < 0 })
		}) {
			return true
		}
	}
	return false
}

func always[T any](versions []T, so func(T) bool) bool {
	return !slices.ContainsFunc(versions, func(v T) bool { return !so(v) })
}
