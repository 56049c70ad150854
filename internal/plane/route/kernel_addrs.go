package route

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

func (k *kernel) listAddrs() (map[plan.Addr]heldAddr, error) {
	if _, err := k.listLinks(); err != nil {
		return nil, err
	}
	list, err := k.addresses.listAddrs()
	if err != nil {
		return nil, err
	}
	have := map[plan.Addr]heldAddr{}
	for _, a := range list {
		spec := plan.AddrSpec{NoDAD: a.prefix.Addr().Is6() && a.flags&unix.IFA_F_NODAD != 0,
			Deprecated: a.isDeprecated()}
		have[plan.Addr{Dev: k.name[a.link], Prefix: a.prefix}] = heldAddr{spec: spec, ours: a.isOurs()}
	}
	return have, nil
}

func (k *kernel) putAddr(a plan.Addr, spec plan.AddrSpec, there bool) error {
	return k.addresses.putAddr(k.index[a.Dev], a.Prefix, spec, there)
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
	err := k.netlink.AddrDel(k.linkByName(a.Dev), &netlink.Addr{IPNet: toIPNet(a.Prefix)})
	return ignoreGone(err, unix.EADDRNOTAVAIL, unix.ENODEV)
}

func (k *kernel) promoteSecondaries(dev string) (restore func(), err error) {
	key := plan.LinkSetting(dev, "promote_secondaries")
	old, err := k.readSysctl(key)
	if err != nil || old != "0" {
		return func() {}, err
	}
	return func() { _ = k.setSysctl(key, old) }, k.setSysctl(key, "1")
}
