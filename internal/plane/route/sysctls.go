package route

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

func sysctlRow(k plan.Sysctl, value string) string { return "sysctl " + k.Key + "=" + value }

func (p *Plane) growSysctls(want *plan.State, r *refusals) error {
	keys := slices.SortedFunc(maps.Keys(want.Sysctls), func(a, b plan.Sysctl) int { return cmp.Compare(a.Key, b.Key) })
	for _, k := range keys {
		value, _ := want.Sysctls.Get(k)
		if err := r.add(want.Sysctls.Owner(k), sysctlRow(k, value), p.growSysctl(k.Key, value)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) growSysctl(key, value string) error {
	have, err := p.stack.sysctl(key)
	if err != nil || sameSysctl(have, value) {
		return err
	}
	if err := p.stack.setSysctl(key, value); err != nil {
		return err
	}
	have, err = p.stack.sysctl(key)
	if err == nil && !sameSysctl(have, value) {
		return fmt.Errorf("the kernel made it %q", have)
	}
	return err
}

// sameSysctl ignores how the numbers of a setting are separated.
func sameSysctl(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

// sysctlPath is sysctl(8)'s reading of a key: dots separate, and a slash stands for a dot within a name
// ("net.ipv4.conf.eth0/100.rp_filter").
func sysctlPath(key string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(key)
}
