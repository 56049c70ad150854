package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// selector is what a condition asks of a packet. One function is set, or drawn.
type selector struct {
	addr   func(walker) netip.Addr
	number func(walker) int
	word   func(walker) string
	known  []string // words that may be compared with; nil is any
	drawn  bool     // a number by chance, or by a hash
	v4, v6 bool     // only packets of that family have it
}

// concatenation is selectors with " . " between them, or one alone.
type concatenation []selector

func (c concatenation) of(w walker) bool {
	return !slices.ContainsFunc(c, func(s selector) bool { return s.v4 && w.p.Src.Is6() || s.v6 && w.p.Src.Is4() })
}

// found is the values that a set or a map has for the packet.
func (c concatenation) found(w walker, set string) []string {
	if !c.of(w) {
		return nil
	}
	parts := make([]string, len(c))
	for i, s := range c {
		parts[i] = s.text(w)
	}
	return w.zone().nftSets[set].find(parts)
}

// text is the value as elements have it.
func (s selector) text(w walker) string {
	switch {
	case s.addr != nil:
		return s.addr(w).String()
	case s.number != nil:
		return strconv.Itoa(s.number(w))
	case s.word != nil:
		return s.word(w)
	}
	return ""
}

func (p *ruleParser) selectors() (concatenation, error) {
	var c concatenation
	for {
		s, err := p.selector()
		if err != nil {
			return nil, err
		}
		if c = append(c, s); !p.take(".") {
			return c, nil
		}
	}
}

func (p *ruleParser) selector() (selector, error) {
	switch {
	case p.take("iifname"):
		return selector{word: func(w walker) string { return w.iif }}, nil
	case p.take("oifname"):
		return selector{word: walker.outgoing}, nil
	case p.take("meta mark"):
		return selector{number: func(w walker) int { return w.mark }}, nil
	case p.take("meta nfproto"):
		return selector{word: walker.family, known: []string{"ipv4", "ipv6"}}, nil
	case p.take("meta l4proto"):
		known := []string{"tcp", "udp", "sctp", "icmp", "ipv6-icmp"}
		return selector{word: walker.protocol, known: known}, nil
	case p.take("th dport"):
		return selector{number: func(w walker) int { return int(w.p.DstPort) }}, nil
	case p.take("fib saddr type"):
		return selector{word: walker.sourceType, known: []string{"local"}}, nil
	case p.peek() == "ct":
		return p.connection()
	case p.peek() == "ip", p.peek() == "ip6":
		return p.address()
	}
	return p.number()
}

// address reads the fields of an IP header.
func (p *ruleParser) address() (selector, error) {
	s := selector{v4: p.peek() == "ip", v6: p.peek() == "ip6"}
	p.next()
	switch name := p.next(); name {
	case "saddr":
		s.addr = func(w walker) netip.Addr { return w.p.Src }
	case "daddr":
		s.addr = func(w walker) netip.Addr { return w.p.Dst }
	default:
		return s, fmt.Errorf("unknown field %q", name)
	}
	return s, nil
}

// connection reads what conntrack knows. A packet that is walked is the first of its connection, or a reply.
func (p *ruleParser) connection() (selector, error) {
	switch {
	case p.take("ct mark"):
		return selector{number: func(w walker) int { return w.ctMark }}, nil
	case p.take("ct direction"):
		return selector{word: walker.direction, known: []string{"original", "reply"}}, nil
	case p.take("ct state"):
		return selector{word: walker.state, known: []string{"new", "established", "invalid", "untracked"}}, nil
	case p.take("ct status"):
		return selector{word: walker.status, known: []string{"dnat"}}, nil
	case p.take("ct original ip daddr"):
		return selector{addr: func(w walker) netip.Addr { return w.asked.Addr() }, v4: true}, nil
	case p.take("ct original ip6 daddr"):
		return selector{addr: func(w walker) netip.Addr { return w.asked.Addr() }, v6: true}, nil
	case p.take("ct original ip saddr"):
		return selector{addr: func(w walker) netip.Addr { return w.began }, v4: true}, nil
	case p.take("ct original ip6 saddr"):
		return selector{addr: func(w walker) netip.Addr { return w.began }, v6: true}, nil
	case p.take("ct original proto-dst"):
		return selector{number: func(w walker) int { return int(w.asked.Port()) }}, nil
	}
	return selector{}, fmt.Errorf("unknown field %q", p.peek2())
}

// number reads "numgen random mod N" or "jhash ip saddr mod N seed S".
func (p *ruleParser) number() (selector, error) {
	s := selector{drawn: true, v4: p.take("jhash ip saddr mod")}
	s.v6 = !s.v4 && p.take("jhash ip6 saddr mod")
	if !s.v4 && !s.v6 && !p.take("numgen random mod") {
		return s, errUnknown
	}
	_, err := strconv.ParseUint(p.next(), 0, 32)
	if (s.v4 || s.v6) && p.take("seed") {
		p.next()
	}
	return s, err
}

// condition reads a selector, or several, [& MASK] [!=] and VALUE, { VALUE, … } or @SET.
func (p *ruleParser) condition() (statement, error) {
	key, err := p.selectors()
	if err != nil {
		return nil, err
	}
	mask := -1
	if p.take("&") {
		n, err := strconv.ParseUint(p.next(), 0, 32)
		if err != nil || key[0].number == nil {
			return nil, fmt.Errorf("unknown mask")
		}
		mask = int(n)
	}
	negate := p.take("!=")
	in, err := p.operand(key, mask)
	return func(w *walker) verdict {
		if !key.of(*w) || in(*w) == negate {
			return verdict{kind: mismatch}
		}
		return verdict{}
	}, err
}

func (p *ruleParser) operand(key concatenation, mask int) (func(walker) bool, error) {
	if set, is := strings.CutPrefix(p.peek(), "@"); is {
		p.next()
		p.rule.sets = append(p.rule.sets, set)
		return func(w walker) bool { return len(key.found(w, set)) > 0 }, nil
	}
	if len(key) > 1 || key[0].drawn {
		return nil, fmt.Errorf("unknown operator %q", p.peek())
	}
	var choices []func(walker) bool
	list := p.take("{")
	for {
		text, more := strings.CutSuffix(p.next(), ",")
		equals, err := key[0].equals(text, mask)
		if err != nil {
			return nil, err
		}
		if choices = append(choices, equals); !more && (!list || p.take("}")) {
			break
		}
	}
	return func(w walker) bool {
		return slices.ContainsFunc(choices, func(f func(walker) bool) bool { return f(w) })
	}, nil
}

// equals compares with one value.
func (s selector) equals(text string, mask int) (func(walker) bool, error) {
	switch {
	case s.addr != nil:
		p, err := parsePrefix(text)
		return func(w walker) bool { return p.Contains(s.addr(w)) }, err
	case s.number != nil:
		n, err := strconv.ParseUint(text, 0, 32)
		return func(w walker) bool { return s.number(w)&mask == int(n) }, err
	}
	word, err := strings.Trim(text, `"`), error(nil)
	if word == "" || s.known != nil && !slices.Contains(s.known, word) || s.known == nil && word == text {
		err = fmt.Errorf("unknown value %q", text)
	}
	return func(w walker) bool { return s.word(w) == word }, err
}
