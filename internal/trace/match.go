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
}

// match is a match, parsed. sets are those that it names, by OVN name.
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
	holds, err := p.or()
	if err == nil && p.peek() != "" {
		err = fmt.Errorf("unexpected %q", p.peek())
	}
	if err != nil {
		return match{}, fmt.Errorf("the tracer does not understand the match %q: %w", text, err)
	}
	return match{holds, p.sets}, nil
}

type parser struct{ tokens, sets []string }

var token = regexp.MustCompile(`\|\||&&|==|!=|[(){},!]|"[^"]*"|[^\s(){},!=&|"]+`)

func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	t := p.peek()
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) or() (predicate, error) {
	return p.chain("||", p.and, func(a, b predicate) predicate {
		return func(e env) bool { return a(e) || b(e) }
	})
}

func (p *parser) and() (predicate, error) {
	return p.chain("&&", p.unary, func(a, b predicate) predicate {
		return func(e env) bool { return a(e) && b(e) }
	})
}

func (p *parser) chain(
	op string, operand func() (predicate, error), join func(a, b predicate) predicate,
) (predicate, error) {
	v, err := operand()
	for err == nil && p.peek() == op {
		p.next()
		var r predicate
		if r, err = operand(); err == nil {
			v = join(v, r)
		}
	}
	return v, err
}

func (p *parser) unary() (predicate, error) {
	switch p.peek() {
	case "!":
		p.next()
		v, err := p.unary()
		return func(e env) bool { return !v(e) }, err
	case "(":
		p.next()
		v, err := p.or()
		if err == nil && p.next() != ")" {
			err = fmt.Errorf("missing )")
		}
		return v, err
	}
	return p.comparison()
}

// comparison reads a field that is true or false by itself, or FIELD == CONSTANT, FIELD != { CONSTANT, … }.
func (p *parser) comparison() (predicate, error) {
	name := p.next()
	f, is := fieldOf(name)
	switch {
	case !is:
		return nil, fmt.Errorf("unknown field %q", name)
	case f.truth != nil:
		return f.truth, nil
	}
	op := p.next()
	if op != "==" && op != "!=" {
		return nil, fmt.Errorf("unknown operator %q after %s", op, name)
	}
	in, err := p.constants(f)
	// A field that the packet has not (ip6.src of an IPv4 packet) makes the whole comparison false, negated or not.
	return func(e env) bool { return f.has(e) && in(e) == (op == "==") }, err
}

// constants reads the right side of a comparison.
func (p *parser) constants(f field) (predicate, error) {
	t := p.next()
	if t != "{" {
		return p.constant(f, t)
	}
	var all []predicate
	for t = p.next(); t != "}"; t = p.next() {
		if t == "," && len(all) > 0 {
			continue
		}
		one, err := p.constant(f, t)
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

// constant reads a number, a string, an address, a prefix, or $SET, as the field has it.
func (p *parser) constant(f field, text string) (predicate, error) {
	set, isSet := strings.CutPrefix(text, "$")
	switch {
	case f.text != nil:
		s, err := strconv.Unquote(text)
		return func(e env) bool { return f.text(e) == s }, err
	case f.number != nil:
		n, err := strconv.ParseUint(text, 0, 32)
		return func(e env) bool { return f.number(e) == int(n) }, err
	case isSet:
		p.sets = append(p.sets, set)
		return func(e env) bool { return e.sets[set].has(f.addr(e)) }, nil
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
