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

func (c concatenation) appliesTo(w walker) bool {
	return !slices.ContainsFunc(c, func(s selector) bool { return s.v4 && w.p.Src.Is6() || s.v6 && w.p.Src.Is4() })
}

// findIn is the values that a set or a map has for the packet.
func (c concatenation) findIn(w walker, set string) []string {
	if !c.appliesTo(w) {
		return nil
	}
	parts := make([]string, len(c))
	for i, s := range c {
		parts[i] = s.elementText(w)
	}
	return w.ownZone().nftSets[set].findValues(parts)
}

// elementText is the value as elements have it.
func (s selector) elementText(w walker) string {
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

func (p *ruleParser) parseSelectors() (concatenation, error) {
	var c concatenation
	for {
		s, err := p.parseSelector()
		if err != nil {
			return nil, err
		}
		if c = append(c, s); !p.takeWords(".") {
			return c, nil
		}
	}
}

func (p *ruleParser) parseSelector() (selector, error) {
	switch {
	case p.takeWords("iifname"):
		return selector{word: func(w walker) string { return w.iif }}, nil
	case p.takeWords("oifname"):
		return selector{word: walker.outgoingLink}, nil
	case p.takeWords("meta mark"):
		return selector{number: func(w walker) int { return w.mark }}, nil
	case p.takeWords("meta nfproto"):
		return selector{word: walker.familyWord, known: []string{"ipv4", "ipv6"}}, nil
	case p.takeWords("meta l4proto"):
		known := []string{"tcp", "udp", "sctp", "icmp", "ipv6-icmp"}
		return selector{word: walker.protocolWord, known: known}, nil
	case p.takeWords("th dport"):
		return selector{number: func(w walker) int { return int(w.p.DstPort) }}, nil
	case p.takeWords("fib saddr type"):
		return selector{word: walker.sourceType, known: []string{"local"}}, nil
	case p.peekWord() == "ct":
		return p.parseConnection()
	case p.peekWord() == "ip", p.peekWord() == "ip6":
		return p.parseAddress()
	}
	return p.parseNumber()
}

// parseAddress reads the fields of an IP header.
func (p *ruleParser) parseAddress() (selector, error) {
	s := selector{v4: p.peekWord() == "ip", v6: p.peekWord() == "ip6"}
	p.nextWord()
	switch name := p.nextWord(); name {
	case "saddr":
		s.addr = func(w walker) netip.Addr { return w.p.Src }
	case "daddr":
		s.addr = func(w walker) netip.Addr { return w.p.Dst }
	default:
		return s, fmt.Errorf("unknown field %q", name)
	}
	return s, nil
}

// parseConnection reads what conntrack knows. A packet that is walked is the first of its connection, or a reply.
func (p *ruleParser) parseConnection() (selector, error) {
	switch {
	case p.takeWords("ct mark"):
		return selector{number: func(w walker) int { return w.ctMark }}, nil
	case p.takeWords("ct direction"):
		return selector{word: walker.connDirection, known: []string{"original", "reply"}}, nil
	case p.takeWords("ct state"):
		return selector{word: walker.connState, known: []string{"new", "established", "invalid", "untracked"}}, nil
	case p.takeWords("ct status"):
		return selector{word: walker.connStatus, known: []string{"dnat"}}, nil
	case p.takeWords("ct original ip daddr"):
		return selector{addr: func(w walker) netip.Addr { return w.asked.Addr() }, v4: true}, nil
	case p.takeWords("ct original ip6 daddr"):
		return selector{addr: func(w walker) netip.Addr { return w.asked.Addr() }, v6: true}, nil
	case p.takeWords("ct original ip saddr"):
		return selector{addr: func(w walker) netip.Addr { return w.began }, v4: true}, nil
	case p.takeWords("ct original ip6 saddr"):
		return selector{addr: func(w walker) netip.Addr { return w.began }, v6: true}, nil
	case p.takeWords("ct original proto-dst"):
		return selector{number: func(w walker) int { return int(w.asked.Port()) }}, nil
	}
	return selector{}, fmt.Errorf("unknown field %q", p.peek2())
}

// parseNumber reads "numgen random mod N" or "jhash ip saddr mod N seed S".
func (p *ruleParser) parseNumber() (selector, error) {
	s := selector{drawn: true, v4: p.takeWords("jhash ip saddr mod")}
	s.v6 = !s.v4 && p.takeWords("jhash ip6 saddr mod")
	if !s.v4 && !s.v6 && !p.takeWords("numgen random mod") {
		return s, errUnknown
	}
	_, err := strconv.ParseUint(p.nextWord(), 0, 32)
	if (s.v4 || s.v6) && p.takeWords("seed") {
		p.nextWord()
	}
	return s, err
}

// parseCondition reads a selector, or several, [& MASK] [!=] and VALUE, { VALUE, … } or @SET.
func (p *ruleParser) parseCondition() (statement, error) {
	key, err := p.parseSelectors()
	if err != nil {
		return nil, err
	}
	mask := -1
	if p.takeWords("&") {
		n, err := strconv.ParseUint(p.nextWord(), 0, 32)
		if err != nil || key[0].number == nil {
			return nil, fmt.Errorf("unknown mask")
		}
		mask = int(n)
	}
	negate := p.takeWords("!=")
	in, err := p.parseOperand(key, mask)
	return func(w *walker) verdict {
		if !key.appliesTo(*w) || in(*w) == negate {
			return verdict{kind: mismatch}
		}
		return verdict{}
	}, err
}

func (p *ruleParser) parseOperand(key concatenation, mask int) (func(walker) bool, error) {
	if set, is := strings.CutPrefix(p.peekWord(), "@"); is {
		p.nextWord()
		p.rule.sets = append(p.rule.sets, set)
		return func(w walker) bool { return len(key.findIn(w, set)) > 0 }, nil
	}
	if len(key) > 1 || key[0].drawn {
		return nil, fmt.Errorf("unknown operator %q", p.peekWord())
	}
	var choices []func(walker) bool
	list := p.takeWords("{")
	for {
		text, more := strings.CutSuffix(p.nextWord(), ",")
		equals, err := key[0].compareWith(text, mask)
		if err != nil {
			return nil, err
		}
		if choices = append(choices, equals); !more && (!list || p.takeWords("}")) {
			break
		}
	}
	return func(w walker) bool {
		return slices.ContainsFunc(choices, func(f func(walker) bool) bool { return f(w) })
	}, nil
}

// compareWith compares with one value.
func (s selector) compareWith(text string, mask int) (func(walker) bool, error) {
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
