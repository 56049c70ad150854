package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// statement is one statement of a rule: a condition, a change of the packet, or a verdict.
type statement func(*walker) verdict

// verdict is what a statement says, or a rule, or a chain.
type verdict struct {
	kind  verdictKind
	why   string           // of a drop, for the reader
	chain string           // of a jump or a goto
	to    []netip.AddrPort // the addresses that a destination is translated to; one of them
}

type verdictKind int

const (
	goOn        verdictKind = iota // with the next statement, rule, chain
	change                         // the same, and the packet is another
	mismatch                       // with the next rule
	accept                         // with the next base chain
	drop                           //
	leave                          // return: with the chain that jumped here
	jump                           // to a chain, and back
	goTo                           // to a chain, and back to where a return would lead
	source                         // accept, and no more chains that translate
	destination                    // the same
)

// ruleParser reads a rule word by word.
type ruleParser struct {
	words []string
	rule  rule
}

// parseRule reads a rule, of what Egret writes in the language of nft(8). All else is an error.
func parseRule(text string) (rule, error) {
	p := &ruleParser{words: strings.Fields(text), rule: rule{text: text}}
	for len(p.words) > 0 {
		at := p.peekWord()
		s, err := p.parseStatement()
		if err != nil {
			return rule{}, fmt.Errorf("the tracer does not understand %q: %w", at, err)
		}
		p.rule.statements = append(p.rule.statements, s)
	}
	return p.rule, nil
}

func (p *ruleParser) peekWord() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *ruleParser) nextWord() string {
	w := p.peekWord()
	if w != "" {
		p.words = p.words[1:]
	}
	return w
}

// takeWords takes these words, if they are next.
func (p *ruleParser) takeWords(text string) bool {
	words := strings.Fields(text)
	if len(p.words) < len(words) || !slices.Equal(p.words[:len(words)], words) {
		return false
	}
	p.words = p.words[len(words):]
	return true
}

func constVerdict(v verdict) statement { return func(*walker) verdict { return v } }

func (p *ruleParser) parseStatement() (statement, error) {
	switch {
	case p.takeWords("counter"):
		return constVerdict(verdict{}), nil
	case p.takeWords("accept"):
		return constVerdict(verdict{kind: accept}), nil
	case p.takeWords("drop"):
		return constVerdict(verdict{kind: drop, why: "host rule " + p.rule.text}), nil
	case p.takeWords("reject with tcp reset"), p.takeWords("reject"):
		return constVerdict(verdict{kind: drop, why: "rejected: host rule " + p.rule.text}), nil
	case p.takeWords("return"):
		return constVerdict(verdict{kind: leave}), nil
	case p.takeWords("jump"):
		return p.toChain(jump)
	case p.takeWords("goto"):
		return p.toChain(goTo)
	}
	return p.parseChange()
}

func (p *ruleParser) toChain(kind verdictKind) (statement, error) {
	name := p.nextWord()
	p.rule.chains = append(p.rule.chains, name)
	return constVerdict(verdict{kind: kind, chain: name}), nil
}

// parseChange reads statements that change the packet or its connection.
func (p *ruleParser) parseChange() (statement, error) {
	switch {
	case p.takeWords("masquerade to :" + plan.PodPorts), p.takeWords("masquerade"):
		return func(w *walker) verdict { w.p.Src = w.linkAddress(); return verdict{kind: source} }, nil
	case p.takeWords("snat ip to ip daddr"), p.takeWords("snat ip6 to ip6 daddr"):
		return func(w *walker) verdict { w.p.Src = w.p.Dst; return verdict{kind: source} }, nil
	case p.takeWords("snat ip to"), p.takeWords("snat ip6 to"):
		to, err := netip.ParseAddr(p.nextWord())
		return func(w *walker) verdict { w.p.Src = to; return verdict{kind: source} }, err
	case p.takeWords("dnat ip to"), p.takeWords("dnat ip6 to"):
		return p.parseMapLookup()
	case p.takeWords("meta mark set ct mark"):
		return func(w *walker) verdict { w.mark = w.ctMark; return verdict{kind: change} }, nil
	case p.takeWords("ct mark set meta mark"):
		return func(w *walker) verdict { w.ctMark = w.mark; return verdict{kind: change} }, nil
	case p.takeWords("meta mark set"):
		n, err := strconv.ParseUint(p.nextWord(), 0, 32)
		return func(w *walker) verdict { w.mark = int(n); return verdict{kind: change} }, err
	}
	return p.parseCondition()
}

// parseMapLookup reads "KEY map @MAP". A key that the map does not have is a condition that does not hold.
func (p *ruleParser) parseMapLookup() (statement, error) {
	key, err := p.parseSelectors()
	if err != nil {
		return nil, err
	}
	if p.takeWords("map {") {
		return p.parseTargets(key)
	}
	name, is := strings.CutPrefix(p.peek2(), "map @")
	if !is {
		return nil, fmt.Errorf("unknown destination %q", p.peek2())
	}
	p.words = p.words[2:]
	p.rule.sets = append(p.rule.sets, name)
	return func(w *walker) verdict {
		var to []netip.AddrPort
		for _, value := range key.findIn(*w, name) {
			t, _ := parseTarget(value) // it was read before
			to = append(to, t)
		}
		if len(to) == 0 {
			return verdict{kind: mismatch}
		}
		slices.SortFunc(to, netip.AddrPort.Compare)
		return verdict{kind: destination, to: to}
	}, nil
}

// parseTargets reads "0 : ADDRESS . PORT, 1 : … }", of which a number that is drawn chooses one.
func (p *ruleParser) parseTargets(key concatenation) (statement, error) {
	text, rest, ended := strings.Cut(strings.Join(p.words, " "), " }")
	if p.words = strings.Fields(rest); !ended || len(key) != 1 || !key[0].drawn {
		return nil, fmt.Errorf("unknown destinations %q", text)
	}
	var to []netip.AddrPort
	for i, element := range strings.Split(text, ", ") {
		value, is := strings.CutPrefix(element, fmt.Sprint(i, " : "))
		t, err := parseTarget(value)
		if !is || err != nil {
			return nil, fmt.Errorf("unknown destination %q", element)
		}
		to = append(to, t)
	}
	return func(*walker) verdict { return verdict{kind: destination, to: to} }, nil
}

func (p *ruleParser) peek2() string { return strings.Join(p.words[:min(2, len(p.words))], " ") }
