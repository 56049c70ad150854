package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

func addrRow(k plan.Addr) string { return "addr " + k.Dev + " " + k.Prefix.String() }

func (p *Plane) growAddrs(want *plan.State, r *refusals) error {
	if len(want.Addrs) == 0 {
		return nil
	}
	links, err := p.stack.listLinks()
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	if err := p.setLinksUp(want, links); err != nil {
		return err
	}
	have, err := p.heldAddrs()
	if err != nil {
		return err
	}
	for _, k := range slices.SortedFunc(maps.Keys(want.Addrs), compareAddrs) {
		spec, _ := want.Addrs.Get(k)
		if err := r.addRefusal(want.Addrs.Owner(k), addrRow(k), p.growAddr(k, spec, links, have)); err != nil {
			return err
		}
	}
	return nil
}

// setLinksUp sets the links up that have wanted addresses: a link that is down has no routes, and resolves nothing. A
// link whose only wanted addresses are deprecated is somebody else's, and left as it is.
func (p *Plane) setLinksUp(want *plan.State, links links) error {
	devs := map[string]bool{}
	for k, spec := range want.Addrs.Rows() {
		if !spec.Deprecated && plane.CheckDevice(k.Dev) == nil {
			devs[k.Dev] = true
		}
	}
	for _, dev := range slices.Sorted(maps.Keys(devs)) {
		if up, exists := links(dev); up || !exists {
			continue
		}
		if err := p.stack.setUp(dev); err != nil {
			return fmt.Errorf("set the link %s up: %w", dev, err)
		}
	}
	return nil
}

func (p *Plane) growAddr(k plan.Addr, spec plan.AddrSpec, links links, have map[plan.Addr]heldAddr) error {
	if err := plane.CheckDevice(k.Dev); err != nil {
		return err
	}
	if _, exists := links(k.Dev); !exists {
		return noLink(k.Dev)
	}
	h, there := have[k]
	if there && !h.ours {
		return nil
	}
	if h.severed {
		return p.renewAddr(k, spec)
	}
	delete(p.renewed, k)
	if there && h.spec == seenSpec(k, spec) {
		return nil
	}
	if err := p.stack.putAddr(k, spec, there); err != nil {
		return err
	}
	p.unproven[k] = true
	return nil
}

// mostRenewals is how often an address is added again in vain. ip route flush deletes again what has come meanwhile.
const mostRenewals = 5

// renewAddr removes an address and adds it again, so that the kernel makes its routes again. Where the routes do not
// come back, doing it again and again would only cut connections.
func (p *Plane) renewAddr(k plan.Addr, spec plan.AddrSpec) error {
	if p.renewed[k] == mostRenewals {
		return errors.New("the kernel has no routes of the address, and does not make them when it is added again")
	}
	p.renewed[k]++
	if err := p.stack.delAddr(k); err != nil {
		return err
	}
	if err := p.stack.putAddr(k, spec, false); err != nil {
		return err
	}
	p.unproven[k] = true
	return nil
}

// seenSpec is spec as the kernel shows it: duplicate address detection is IPv6's.
func seenSpec(k plan.Addr, spec plan.AddrSpec) plan.AddrSpec {
	spec.NoDAD = spec.NoDAD && k.Prefix.Addr().Is6()
	return spec
}

// heldAddrs lists all addresses. An address that we added and that the kernel shows unmarked is ours as well.
func (p *Plane) heldAddrs() (map[plan.Addr]heldAddr, error) {
	have, err := p.stack.listAddrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	have = maps.Clone(have)
	for k := range p.unproven {
		h, there := have[k]
		if !there || h.ours {
			delete(p.unproven, k)
			continue
		}
		h.ours = true
		have[k] = h
	}
	return have, nil
}

func (p *Plane) shrinkAddrs(want *plan.State, r *refusals) error {
	have, err := p.heldAddrs()
	if err != nil {
		return err
	}
	for _, k := range slices.SortedFunc(maps.Keys(have), compareAddrs) {
		if _, wanted := want.Addrs[k]; wanted || !have[k].ours {
			continue
		}
		if err := p.stack.delAddr(k); err != nil {
			return fmt.Errorf("delete %s: %w", addrRow(k), err)
		}
	}
	return nil
}

func compareAddrs(a, b plan.Addr) int {
	return cmp.Or(cmp.Compare(a.Dev, b.Dev), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(),
		b.Prefix.Bits()))
}
