package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
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
	if err := checkSysctl(key, value); err != nil {
		return err
	}
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
