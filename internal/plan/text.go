package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
)

// Lines is the state's text form: one line a row, sorted. Tests, logs and the CLI print the same text.
func (s *State) Lines() []string {
	var l []string
	add(&l, s.NB, func(k RowID, r Row) string { return "nb " + k.String() + r.String() })
	add(&l, s.SB, func(k RowID, r Row) string { return "sb " + k.String() + r.String() })
	add(&l, s.SetElems, func(k SetElem, _ None) string { return "set " + k.Set + " has " + k.Addr })
	add(&l, s.OVSIDs, func(k, v string) string { return "ovs external_ids:" + k + "=" + v })
	add(&l, s.Ports, func(k Port, v PortSpec) string { return "port " + k.Bridge + " " + k.Name + v.String() })
	add(&l, s.Addrs, func(k Addr, v AddrSpec) string { return "addr " + k.Dev + " " + k.Prefix.String() + v.String() })
	add(&l, s.ReleasedAddrs, func(k netip.Addr, _ None) string { return "no addr " + k.String() })
	add(&l, s.Routes, func(k RouteKey, v Route) string { return "route " + k.String() + v.String() })
	add(&l, s.Rules, func(k Rule, _ None) string { return "rule " + k.String() })
	add(&l, s.Sysctls, func(k Sysctl, v string) string { return "sysctl " + k.Key + "=" + v })
	add(&l, s.NFTChains, func(k NFTChain, v NFTChainSpec) string { return "nft chain " + k.String() + v.String() })
	add(&l, s.NFTRules, func(k NFTRule, v string) string {
		return "nft rule " + k.Chain.String() + " [" + k.Name + "] " + v
	})
	add(&l, s.NFTSets, func(k NFTSet, v NFTSetSpec) string { return "nft set " + k.Name + v.String() })
	add(&l, s.NFTElems, func(k NFTElem, v string) string { return "nft elem " + k.Set + " " + k.Key + arrowTo(v) })
	add(&l, s.Accepts, func(k Accept, _ None) string { return "accept " + k.String() })
	add(&l, s.Flows, func(k Flow, v string) string { return "flow " + k.String() + " actions=" + v })
	add(&l, s.Announcements, func(k Announcement, _ None) string { return "announce " + k.IP.String() + k.placeText() })
	add(&l, s.Sources, func(k Source, v SourcesTo) string {
		return "source " + k.Router + " " + k.Pod.String() + arrowTo(v.String())
	})
	add(&l, s.SourceExempt, func(k netip.Addr, _ None) string { return "source exempt " + k.String() })
	add(&l, s.Masquerades, func(k Masquerade, _ None) string {
		return "masquerade " + k.Router + " as " + k.IP.String() + " behind " + k.Behind
	})
	add(&l, s.Destinations, func(k string, v destinations.Set) string {
		return "destinations " + k + arrowTo(v.String())
	})
	add(&l, s.Datagrams, func(k Datagram, _ None) string {
		return "datagram " + flagText(k.OVN, "by OVN ") + flagText(k.Foreign, "by others ") +
			flagText(k.Protocol != "udp", "of "+k.Protocol+" ") + k.From.String() + arrowTo(k.To.String())
	})
	add(&l, s.HealthChecks, func(k HealthCheck, v HealthSpec) string {
		if v.Node != "" {
			return fmt.Sprintf("health check %d of node %s: eligible %t", k.Port, v.Node, v.Eligible)
		}
		return fmt.Sprintf("health check %d of %s/%s: %d endpoints", k.Port, v.Namespace, v.Service, v.Endpoints)
	})
	add(&l, s.Steered, func(k Steered, ahead Ahead) string {
		if k.Node == "" {
			return "drops " + k.Object.Key() + " by " + k.IP.String()
		}
		return "steers " + flagText(bool(ahead), "ahead ") + k.Object.Key() + " by " + k.IP.String() + " to " + k.Node +
			sinceSuffix(k.Since)
	})
	add(&l, s.Translated, func(k Egress, v ref.Since) string { return "translates " + k.String() + sinceSuffix(v) })
	add(&l, s.Forwarded, func(k Egress, _ None) string { return "forwards " + k.String() })
	add(&l, s.Answered, func(k Egress, a Announcement) string { return "answers " + k.String() + a.placeText() })
	add(&l, s.Problems, func(k Problem, _ None) string { return "problem of " + k.String() })
	slices.Sort(l)
	return l
}

func (a Announcement) placeText() string { return " at " + a.MAC + " dev " + a.Dev }

// Text is Lines as one string.
func (s *State) Text() string {
	if l := s.Lines(); len(l) > 0 {
		return strings.Join(l, "\n") + "\n"
	}
	return ""
}

// DiffText lists the lines of b that a has not ("+ ") and of a that b has not ("- "), sorted by line.
func DiffText(a, b *State) string {
	before, after := a.Lines(), b.Lines()
	var out []string
	for _, l := range before {
		if _, ok := slices.BinarySearch(after, l); !ok {
			out = append(out, "- "+l)
		}
	}
	for _, l := range after {
		if _, ok := slices.BinarySearch(before, l); !ok {
			out = append(out, "+ "+l)
		}
	}
	slices.SortFunc(out, func(x, y string) int { return strings.Compare(x[2:]+x[:1], y[2:]+y[:1]) })
	return strings.Join(append(out, ""), "\n")
}

func add[K comparable, V any](l *[]string, t Table[K, V], line func(K, V) string) {
	for k, v := range t.Rows() {
		*l = append(*l, line(k, v))
	}
}

func sinceSuffix(v ref.Since) string {
	if v == 0 {
		return ""
	}
	return " since " + v.String()
}

func arrowTo(v string) string {
	if v == "" {
		return ""
	}
	return " -> " + v
}

func (r RowID) String() string { return r.Table + "/" + r.Name }

// String starts with a space, for it follows the row's id.
func (r Row) String() string {
	var b strings.Builder
	if r.Parent != (RowID{}) {
		b.WriteString(" in " + r.Parent.String())
	}
	for _, g := range r.Groups {
		b.WriteString(" and " + g.Name)
	}
	for _, k := range slices.Sorted(maps.Keys(r.Cols)) {
		fmt.Fprintf(&b, " %s=%s", k, valueText(r.Cols[k]))
	}
	return b.String()
}

func valueText(v any) string {
	switch x := v.(type) {
	case string:
		if strings.ContainsAny(x, " \t") || x == "" {
			return fmt.Sprintf("%q", x)
		}
		return x
	case []string:
		return "[" + strings.Join(x, ",") + "]"
	case map[string]string:
		var kv []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			kv = append(kv, k+"="+x[k])
		}
		return "{" + strings.Join(kv, ",") + "}"
	}
	return fmt.Sprint(v)
}

func (p PortSpec) String() string {
	return formatPairs("type", p.Type, "mac", p.MAC, "mtu", numberOrNone(p.MTU), "ids", p.ExternalIDs, "options",
		p.Options, "bfd", p.BFD)
}

func (a AddrSpec) String() string {
	return flagText(a.NoDAD, " nodad") + flagText(a.Deprecated, " preferred_lft=0")
}

func (k RouteKey) String() string { return fmt.Sprintf("table %d %s", k.Table, k.Dst) }

func (r Route) String() string {
	return formatPairs("dev", r.Dev, "via", addrText(r.Via), "src", addrText(r.Src), "mtu", numberOrNone(r.MTU)) +
		flagText(r.OnLink, " onlink")
}

func (r Rule) String() string {
	fam := "v4"
	if r.V6 {
		fam = "v6"
	}
	s := fmt.Sprintf("%s %d:", fam, r.Priority)
	if r.Src.IsValid() {
		s += " from " + r.Src.String()
	}
	if r.Dst.IsValid() {
		s += " to " + r.Dst.String()
	}
	if r.In != "" {
		s += " iif " + r.In
	}
	if r.Mask != 0 {
		s += fmt.Sprintf(" fwmark %#x/%#x", r.Mark, r.Mask)
	}
	return s + fmt.Sprintf(" lookup %d", r.Table)
}

func (c NFTChain) String() string { return c.Family + " " + c.Name }

func (c NFTChainSpec) String() string {
	return formatPairs("type", c.Type, "hook", c.Hook, "priority", c.Priority, "device", c.Device, "policy", c.Policy)
}

func (s NFTSetSpec) String() string {
	return formatPairs("key", s.Key, "value", s.Value) + flagText(s.Interval, " interval") +
		flagText(s.TypeOf, " typeof")
}

func (a Accept) String() string {
	direction := "from"
	if a.Out {
		direction = "to"
	}
	text := [...]string{"v4", "v6"}[boolIndex(a.V6)] + " " + direction + " " + a.Dev
	if a.Src.IsValid() {
		text += " of " + a.Src.String()
	}
	if a.Port != 0 {
		text += " to port " + strconv.Itoa(int(a.Port))
	}
	return text
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f Flow) String() string {
	return fmt.Sprintf("%s table=%d,priority=%d,%s", f.Bridge, f.Table, f.Priority, f.Match)
}

// formatPairs prints the keys whose values are not empty, each after a space.
func formatPairs(kv ...string) string {
	var b strings.Builder
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] != "" {
			b.WriteString(" " + kv[i] + "=" + kv[i+1])
		}
	}
	return b.String()
}

func numberOrNone(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func flagText(on bool, text string) string {
	if on {
		return text
	}
	return ""
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
