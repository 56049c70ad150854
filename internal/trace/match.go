package trace

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// env is what a match in OVN's language (ovn-sb(5), "Logical_Flow") may ask about: the packet, and the zone's address sets.
type env struct {
	p      Packet
	inport string
	mark   int
	sets   map[string]map[string]bool // by OVN name
}

// eval says whether a match holds. The grammar is what Egret writes: || && ! ( ), comparisons with == and !=, sets and lists.
func eval(match string, e env) (bool, error) {
	if match == "" {
		return true, nil
	}
	p := parser{tokens: token.FindAllString(match, -1), e: e}
	v, err := p.or()
	if err == nil && p.peek() != "" {
		err = fmt.Errorf("unexpected %q", p.peek())
	}
	if err != nil {
		return false, fmt.Errorf("match %q: %w", match, err)
	}
	return v, nil
}

type parser struct {
	tokens []string
	e      env
}

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

func (p *parser) or() (bool, error) { return p.chain("||", p.and) }

func (p *parser) and() (bool, error) { return p.chain("&&", p.unary) }

func (p *parser) chain(op string, operand func() (bool, error)) (bool, error) {
	v, err := operand()
	for err == nil && p.peek() == op {
		p.next()
		var r bool
		if r, err = operand(); op == "||" {
			v = v || r
		} else {
			v = v && r
		}
	}
	return v, err
}

func (p *parser) unary() (bool, error) {
	switch p.peek() {
	case "!":
		p.next()
		v, err := p.unary()
		return !v, err
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

func (p *parser) comparison() (bool, error) {
	field := p.next()
	value, present := p.e.field(field)
	if op := p.peek(); op != "==" && op != "!=" {
		if value != "true" && value != "false" {
			return false, fmt.Errorf("%q is no predicate", field)
		}
		return value == "true", nil
	}
	negate := p.next() == "!="
	in, err := p.contains(value)
	// A field that the packet has not (ip6.src of an IPv4 packet) makes the whole comparison false, negated or not.
	return present && in != negate, err
}

func (e env) field(name string) (value string, present bool) {
	switch name {
	case "ip4.src", "ip6.src":
		return e.p.Src.String(), e.p.Src.Is4() == (name == "ip4.src")
	case "ip4.dst", "ip6.dst":
		return e.p.Dst.String(), e.p.Dst.Is4() == (name == "ip4.dst")
	case "inport":
		return e.inport, true
	case "pkt.mark":
		return strconv.Itoa(e.mark), true
	case "pkt.mark[4..9]":
		return strconv.Itoa(e.mark >> 4 & 63), true
	case "ct.trk":
		return "true", true
	case "ct.rpl":
		return strconv.FormatBool(e.p.Reply), true
	case "tcp.dst", "udp.dst", "sctp.dst":
		return strconv.Itoa(int(e.p.DstPort)), strings.HasPrefix(name, e.p.Proto)
	}
	return "", false
}

// contains reads the right side of a comparison and says whether value is (in) it.
func (p *parser) contains(value string) (bool, error) {
	t := p.next()
	if t != "{" {
		return p.is(value, t)
	}
	found := false
	for t = p.next(); t != "}"; t = p.next() {
		switch t {
		case "":
			return false, fmt.Errorf("missing }")
		case ",":
			continue
		}
		in, err := p.is(value, t)
		if err != nil {
			return false, err
		}
		found = found || in
	}
	return found, nil
}

func (p *parser) is(value, constant string) (bool, error) {
	if name, ok := strings.CutPrefix(constant, "$"); ok {
		set, ok := p.e.sets[name]
		if !ok {
			return false, fmt.Errorf("no address set %s", name)
		}
		return inSet(set, value), nil
	}
	if s, err := strconv.Unquote(constant); err == nil {
		return s == value, nil
	}
	if prefix, err := netip.ParsePrefix(constant); err == nil {
		a, err := netip.ParseAddr(value)
		return err == nil && prefix.Contains(a), nil
	}
	return constant == value, nil
}

func inSet(set map[string]bool, value string) bool {
	if set[value] {
		return true
	}
	a, err := netip.ParseAddr(value)
	if err != nil {
		return false
	}
	for member := range set {
		if p, err := netip.ParsePrefix(member); err == nil && p.Contains(a) {
			return true
		}
	}
	return false
}
