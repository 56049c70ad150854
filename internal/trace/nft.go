package trace

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// chain is a chain of nftables with its rules in order. The rest is a base chain's.
type chain struct {
	id     plan.NFTChain
	spec   plan.NFTChainSpec
	rules  []rule
	before order
}

// order is when a base chain comes among those of its hook. The kernel calls all chains that translate from one place
// (nf_nat_core.c: dstnat or srcnat, whatever their own priority is), and there in the order of their own.
type order struct{ hook, own int }

// rule is a rule, parsed. sets, which may be maps, and chains are those that it names.
type rule struct {
	name, text   string
	statements   []statement
	sets, chains []string
}

// indexNFT reads sets, chains and rules.
func (r *Reader) indexNFT(z *zone) error {
	z.nftSets, z.chains, z.hooks = map[string]*nftSet{}, map[plan.NFTChain]*chain{}, map[string][]*chain{}
	if err := z.indexSets(); err != nil {
		return err
	}
	var failed []error
	for id, spec := range z.state.NFTChains.Rows() {
		z.chains[id] = &chain{id: id, spec: spec}
	}
	for id, text := range z.state.NFTRules.Rows() {
		parsed, err := r.rules.parseOnce(text, parseRule)
		if err == nil {
			err = z.addRule(id, parsed)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("nft rule %s [%s] %s: %w", id.Chain, id.Name, text, err))
		}
	}
	for id, c := range z.chains {
		slices.SortFunc(c.rules, func(a, b rule) int { return strings.Compare(a.name, b.name) })
		if err := z.attachChain(c); err != nil {
			failed = append(failed, fmt.Errorf("nft chain %s%s: %w", id, c.spec, err))
		}
	}
	return firstByText(append(failed, z.sortHooks()))
}

// addRule files a rule, if what it names is there: the kernel takes no other.
func (z *zone) addRule(id plan.NFTRule, r rule) error {
	c := z.chains[id.Chain]
	if c == nil {
		return fmt.Errorf("there is no such chain")
	}
	for _, name := range r.sets {
		if z.nftSets[name] == nil {
			return fmt.Errorf("there is no set @%s", name)
		}
	}
	for _, name := range r.chains {
		if z.chains[plan.NFTChain{Family: id.Chain.Family, Name: name}] == nil {
			return fmt.Errorf("there is no chain %s", name)
		}
	}
	r.name = id.Name
	c.rules = append(c.rules, r)
	return nil
}

// Hooks, by the family of the table. Output and ingress have none of the others' packets.
var (
	inetHooks = []string{"prerouting", "input", "forward", "output", "postrouting"}
	// translating are the priorities at which the kernel calls the chains of a hook that translate.
	translating = map[string]int{"prerouting": -100, "input": 100, "output": -100, "postrouting": 100}
	// priorities are nft's names for them (nft(8), "Standard priority names").
	priorities = map[string]int{"raw": -300, "mangle": -150, "dstnat": -100, "filter": 0, "security": 50, "srcnat": 100}
)

// attachChain puts a base chain to its hook. A regular chain has none.
func (z *zone) attachChain(c *chain) error {
	s := c.spec
	if s == (plan.NFTChainSpec{}) {
		return nil
	}
	core, translates := translating[s.Hook]
	own, err := parsePriority(s.Priority)
	inet := c.id.Family == "inet" && slices.Contains(inetHooks, s.Hook) && s.Device == ""
	switch {
	case err != nil:
		return err
	case !inet && (c.id.Family != "netdev" || s.Hook != "ingress" || s.Device == ""):
		return fmt.Errorf("the tracer does not know the hook %q of family %s", s.Hook, c.id.Family)
	case s.Type != "filter" && (s.Type != "nat" || !translates):
		return fmt.Errorf("the tracer does not know chains of type %q there", s.Type)
	case s.Policy != "" && s.Policy != "accept" && s.Policy != "drop":
		return fmt.Errorf("the tracer does not know the policy %q", s.Policy)
	}
	if c.before = (order{own, 0}); s.Type == "nat" {
		c.before = order{core, own}
	}
	z.hooks[s.Hook] = append(z.hooks[s.Hook], c)
	return nil
}

// parsePriority reads "-110", "filter", "filter + 10".
func parsePriority(text string) (int, error) {
	words := strings.Fields(text)
	if len(words) != 1 && len(words) != 3 {
		return 0, fmt.Errorf("the tracer does not know the priority %q", text)
	}
	n, named := priorities[words[0]]
	if !named {
		var err error
		if n, err = strconv.Atoi(words[0]); err != nil || len(words) > 1 {
			return 0, fmt.Errorf("the tracer does not know the priority %q", text)
		}
	}
	if len(words) == 1 {
		return n, nil
	}
	more, err := strconv.Atoi(words[1] + words[2])
	if err != nil {
		return 0, fmt.Errorf("the tracer does not know the priority %q", text)
	}
	return n + more, nil
}

// sortHooks orders chains as the kernel calls them. Of two with one priority that depends on which was made first.
func (z *zone) sortHooks() error {
	var failed []error
	for hook, chains := range z.hooks {
		slices.SortFunc(chains, func(a, b *chain) int {
			return cmp.Or(a.before.hook-b.before.hook, a.before.own-b.before.own, strings.Compare(a.id.Name, b.id.Name))
		})
		for i, c := range chains[1:] {
			other := chains[i]
			same := c.before == other.before || c.before.hook == other.before.hook && c.spec.Type != other.spec.Type
			if same && c.spec.Device == other.spec.Device {
				failed = append(failed, fmt.Errorf("nft chains %s and %s have the same priority at the hook %s",
					other.id, c.id, hook))
			}
		}
	}
	return firstByText(failed)
}

// nftSet is a set or a map.
type nftSet struct {
	spec   plan.NFTSetSpec
	values map[string]string // by key
}

func (z *zone) indexSets() error {
	for id, spec := range z.state.NFTSets.Rows() {
		z.nftSets[id.Name] = &nftSet{spec, map[string]string{}}
	}
	var failed []error
	for e, value := range z.state.NFTElems.Rows() {
		s := z.nftSets[e.Set]
		if s == nil {
			continue // as with address sets: no rule may name it
		}
		s.values[e.Key] = value
		if _, err := parseTarget(value); err != nil && s.spec.Value != "" {
			failed = append(failed, fmt.Errorf("nft elem %s %s: %w", e.Set, e.Key, err))
		}
	}
	return firstByText(failed)
}

// parseTarget reads what maps lead to: "ADDRESS . PORT".
func parseTarget(text string) (netip.AddrPort, error) {
	ip, port, _ := strings.Cut(text, " . ")
	a, err := netip.ParseAddr(ip)
	n, bad := strconv.ParseUint(port, 10, 16)
	return netip.AddrPortFrom(a, uint16(n)), cmp.Or(err, bad)
}

// findValues is the values of a key's parts: several where one of the parts is drawn, which is "" then.
func (s *nftSet) findValues(parts []string) []string {
	if !slices.Contains(parts, "") {
		if value, is := s.values[strings.Join(parts, " . ")]; is {
			return []string{value}
		}
	}
	if !s.spec.Interval {
		return nil
	}
	var found []string
	for key, value := range s.values {
		if slices.EqualFunc(strings.Split(key, " . "), parts, includesValue) {
			found = append(found, value)
		}
	}
	return found
}

// includesValue says whether one part of an element, which may be a prefix or a range, has a value.
func includesValue(part, value string) bool {
	if value == "" || part == value {
		return true
	}
	a, err := netip.ParseAddr(value)
	if err != nil {
		return false
	}
	if p, err := netip.ParsePrefix(part); err == nil {
		return p.Contains(a)
	}
	low, high, is := strings.Cut(part, "-")
	from, err := netip.ParseAddr(low)
	to, bad := netip.ParseAddr(high)
	return is && err == nil && bad == nil && from.Compare(a) <= 0 && a.Compare(to) <= 0
}
