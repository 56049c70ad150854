package trace

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// env is what a match in OVN's language (ovn-sb(5), "Logical_Flow") may ask about: the packet, where it is, and the
// zone's address sets.
type env struct {
	p               Packet
	inport, outport string
	mark            int
	// tracked: the switch has given the packet to conntrack, which it does not with what comes from a router. forced:
	// the gateway router has, and balanced it.
	tracked, forced bool
	sets            map[string]*addressSet
	groups          map[string]map[string]bool
}

// match is a match, parsed. sets are those that it names, by OVN name, and groups of ports behind an @.
type match struct {
	holds predicate
	sets  []string
}

type predicate func(env) bool

// parseMatch reads what Egret writes: || && ! ( ), comparisons with == and !=, sets and lists. All else is an error.
func parseMatch(text string) (match, error) {
	if text == "" {
		return match{holds: func(env) bool { return true }}, nil
	}
	p := &parser{tokens: token.FindAllString(text, -1)}
	if strings.Join(strings.Fields(strings.Join(p.tokens, "")), "") != strings.Join(strings.Fields(text), "") {
		return match{}, fmt.Errorf("the tracer cannot read the match %q", text)
	}
	holds, err := p.parseOr()
	if err == nil && p.peekToken() != "" {
		err = fmt.Errorf("unexpected %q", p.peekToken())
	}
	if err != nil {
		return match{}, fmt.Errorf("the tracer does not understand the match %q: %w", text, err)
	}
	return match{holds, p.sets}, nil
}

type parser struct{ tokens, sets []string }

var token = regexp.MustCompile(`\|\||&&|==|!=|[(){},!]|"[^"]*"|[^\s(){},!=&|"]+`)

func (p *parser) peekToken() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) nextToken() string {
	t := p.peekToken()
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) parseOr() (predicate, error) {
	return p.parseChain("||", p.parseAnd, func(a, b predicate) predicate {
		return func(e env) bool { return a(e) || b(e) }
	})
}

func (p *parser) parseAnd() (predicate, error) {
	return p.parseChain("&&", p.parseUnary, func(a, b predicate) predicate {
		return func(e env) bool { return a(e) && b(e) }
	})
}

func (p *parser) parseChain(
	op string, operand func() (predicate, error), join func(a, b predicate) predicate,
) (predicate, error) {
	v, err := operand()
	for err == nil && p.peekToken() == op {
		p.nextToken()
		var r predicate
		if r, err = operand(); err == nil {
			v = join(v, r)
		}
	}
	return v, err
}

func (p *parser) parseUnary() (predicate, error) {
	switch p.peekToken() {
	case "!":
		p.nextToken()
		v, err := p.parseUnary()
		return func(e env) bool { return !v(e) }, err
	case "(":
		p.nextToken()
		v, err := p.parseOr()
		if err == nil && p.nextToken() != ")" {
			err = fmt.Errorf("missing )")
		}
		return v, err
	}
	return p.parseComparison()
}

// parseComparison reads a field that is true or false by itself, or FIELD == CONSTANT, FIELD != { CONSTANT, … }.
func (p *parser) parseComparison() (predicate, error) {
	name := p.nextToken()
	f, is := fieldOf(name)
	switch {
	case !is:
		return nil, fmt.Errorf("unknown field %q", name)
	case f.truth != nil:
		return f.truth, nil
	}
	op := p.nextToken()
	if op != "==" && op != "!=" {
		return nil, fmt.Errorf("unknown operator %q after %s", op, name)
	}
	in, err := p.parseConstants(f)
	// A field that the packet has not (ip6.src of an IPv4 packet) makes the whole comparison false, negated or not.
	return func(e env) bool { return f.has(e) && in(e) == (op == "==") }, err
}

// parseConstants reads the right side of a comparison.
func (p *parser) parseConstants(f field) (predicate, error) {
	t := p.nextToken()
	if t != "{" {
		return p.parseConstant(f, t)
	}
	var all []predicate
	for t = p.nextToken(); t != "}"; t = p.nextToken() {
		if t == "," && len(all) > 0 {
			continue
		}
		one, err := p.parseConstant(f, t)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return func(e env) bool {
		for _, one := range all {
			if one(e) {
				return true
			}
		}
		return false
	}, nil
}

// parseConstant reads a number, a string, @GROUP, an address, a prefix, or $SET, as the field has it.
func (p *parser) parseConstant(f field, text string) (predicate, error) {
	set, isSet := strings.CutPrefix(text, "$")
	group, isGroup := strings.CutPrefix(text, "@")
	switch {
	case f.text != nil && isGroup:
		p.sets = append(p.sets, text)
		return func(e env) bool { return e.groups[group][f.text(e)] }, nil
	case f.text != nil:
		s, err := strconv.Unquote(text)
		return func(e env) bool { return f.text(e) == s }, err
	case f.number != nil:
		n, err := strconv.ParseUint(text, 0, 32)
		return func(e env) bool { return f.number(e) == int(n) }, err
	case isSet:
		p.sets = append(p.sets, set)
		return func(e env) bool { return e.sets[set].hasAddr(f.addr(e)) }, nil
	}
	within, err := parsePrefix(text)
	return func(e env) bool { return within.Contains(f.addr(e)) }, err
}

// parsePrefix reads a prefix, or an address as one of itself alone.
func parsePrefix(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(text)
	return netip.PrefixFrom(a, a.BitLen()), err
}
