package route

import (
	"math"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

func (k *kernel) addrs() (map[plan.Addr]heldAddr, error) {
	if _, err := k.links(); err != nil {
		return nil, err
	}
	list, err := k.netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	have := map[plan.Addr]heldAddr{}
	for _, a := range list {
		p, ok := fromIPNet(a.IPNet)
		if !ok {
			continue
		}
		spec := plan.AddrSpec{NoDAD: p.Addr().Is6() && a.Flags&unix.IFA_F_NODAD != 0, Deprecated: deprecated(a)}
		have[plan.Addr{Dev: k.name[a.LinkIndex], Prefix: p}] = heldAddr{spec, a.Protocol == AddrProtocol}
	}
	return have, nil
}

// deprecated: a permanent IPv4 address says so by its flag only; its lifetimes are shown as infinite.
func deprecated(a netlink.Addr) bool { return a.PreferedLft == 0 || a.Flags&unix.IFA_F_DEPRECATED != 0 }

func (k *kernel) putAddr(a plan.Addr, spec plan.AddrSpec, there bool) error {
	addr := &netlink.Addr{IPNet: toIPNet(a.Prefix), Protocol: AddrProtocol, ValidLft: math.MaxUint32,
		PreferedLft: math.MaxUint32}
	if spec.Deprecated {
		addr.PreferedLft = 0
	}
	if spec.NoDAD && a.Prefix.Addr().Is6() {
		addr.Flags |= unix.IFA_F_NODAD
	}
	if there {
		return k.netlink.AddrReplace(k.link(a.Dev), addr)
	}
	return k.netlink.AddrAdd(k.link(a.Dev), addr)
}

// delAddr makes the kernel keep the other IPv4 addresses of the same subnet: with promote_secondaries 0, the default of
// older systems, they would go with a primary one, whosever they are.
func (k *kernel) delAddr(a plan.Addr) error {
	if a.Prefix.Addr().Is4() {
		restore, err := k.promoteSecondaries(a.Dev)
		if err != nil {
			return err
		}
		defer restore()
	}
	err := k.netlink.AddrDel(k.link(a.Dev), &netlink.Addr{IPNet: toIPNet(a.Prefix)})
	return gone(err, unix.EADDRNOTAVAIL, unix.ENODEV)
}

func (k *kernel) promoteSecondaries(dev string) (restore func(), err error) {
	key := plan.LinkSetting(dev, "promote_secondaries")
	old, err := k.sysctl(key)
	if err != nil || old != "0" {
		return func() {}, err
	}
	return func() { _ = k.setSysctl(key, old) }, k.setSysctl(key, "1")
}
