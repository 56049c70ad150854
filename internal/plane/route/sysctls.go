package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

func sysctlRow(k plan.Sysctl, value string) string { return "sysctl " + k.Key + "=" + value }

func (p *Plane) growSysctls(want *plan.State, r *refusals) error {
	keys := slices.SortedFunc(maps.Keys(want.Sysctls), func(a, b plan.Sysctl) int {
		// Links that are ours have refused router advertisements before others are to go on taking them.
		return cmp.Or(cmp.Compare(isForwardAll(a.Key), isForwardAll(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	for _, k := range keys {
		value, _ := want.Sysctls.Get(k)
		if err := r.addRefusal(want.Sysctls.Owner(k), sysctlRow(k, value), p.growSysctl(k.Key, value)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) growSysctl(key, value string) error {
	if err := checkSysctl(key, value); err != nil {
		return err
	}
	have, err := p.stack.readSysctl(key)
	if err != nil || sameSysctl(have, value) {
		return err
	}
	if err := p.former.keepValues(setting{key, have}); err != nil {
		return fmt.Errorf("keep its present value: %w", err)
	}
	if isForwardAll(key) > 0 && value == "1" {
		err = p.forwardAll(key)
	} else {
		err = p.stack.setSysctl(key, value)
	}
	if err != nil {
		return err
	}
	have, err = p.stack.readSysctl(key)
	if err == nil && !sameSysctl(have, value) {
		return fmt.Errorf("the kernel made it %q", have)
	}
	return err
}

// forwardAllKey has every link forward IPv6, and new links, too.
const forwardAllKey = "net.ipv6.conf.all.forwarding"

// isForwardAll is 1 if the key is forwardAllKey, else 0.
func isForwardAll(key string) int {
	if key == forwardAllKey {
		return 1
	}
	return 0
}

// forwardAll has the host forward IPv6, and its links take router advertisements as before. A link that forwards takes
// them with accept_ra=2 only, and the kernel removes at once the default routes that others have given (ip-sysctl,
// rt6_purge_dflt_routers). So a link that takes them because it does not forward gets accept_ra=2 first. To a host that
// does not forward 2 means the same as 1.
// A link that comes later starts as it would have, for only "all" decides whether packets are forwarded.
func (p *Plane) forwardAll(key string) error {
	const later = "net.ipv6.conf.default.forwarding"
	before, err := p.stack.readSysctl(later)
	if err != nil {
		return err
	}
	if err := p.former.keepValues(setting{later, before}); err != nil {
		return err
	}
	if err := p.keepTakingRA(); err != nil {
		return fmt.Errorf("keep links taking router advertisements: %w", err)
	}
	if err := p.stack.setSysctl(key, "1"); err != nil || before != "0" {
		return err
	}
	return p.stack.setSysctl(later, before)
}

// keepTakingRA sets accept_ra to 2 on links with IPv6 that take router advertisements and do not forward. It also keeps
// which links forward: the kernel is about to change that of all. A link that is gone by now does not matter.
func (p *Plane) keepTakingRA() error {
	links, err := p.stack.ipv6Links()
	if err != nil {
		return err
	}
	for _, link := range links {
		key := func(name string) string { return "net.ipv6.conf." + strings.ReplaceAll(link, ".", "/") + "." + name }
		forwards, err := p.stack.readSysctl(key("forwarding"))
		if err != nil {
			continue
		}
		if err := p.former.keepValues(setting{key("forwarding"), forwards}); err != nil {
			return err
		}
		accepts, _ := p.stack.readSysctl(key("accept_ra"))
		disabled, _ := p.stack.readSysctl(key("disable_ipv6"))
		if forwards != "0" || accepts != "1" || disabled != "0" {
			continue
		}
		if err := p.former.keepValues(setting{key("accept_ra"), accepts}); err != nil {
			return err
		}
		if err := ignoreGone(p.stack.setSysctl(key("accept_ra"), "2"), unix.ENOENT, unix.ENODEV); err != nil {
			return err
		}
	}
	return nil
}

// checkSysctl says why a key would lead to another file than one below its own directory, or a value be more than one
// line.
func checkSysctl(key, value string) error {
	for part := range strings.SplitSeq(sysctlPath(key), "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("sysctl %q has a part that is no name", key)
		}
	}
	return errors.Join(plane.CheckWord("sysctl", key), plane.CheckText("value of sysctl "+key, value, ""))
}

// sameSysctl ignores how the numbers of a setting are separated.
func sameSysctl(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

// sysctlPath is sysctl(8)'s reading of a key: dots separate, and a slash stands for a dot within a name
// ("net.ipv4.conf.eth0/100.rp_filter").
func sysctlPath(key string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(key)
}
