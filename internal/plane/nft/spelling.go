package nft

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// Rows of the plan as errors name them.
func chainRow(k plan.NFTChain) string { return "nft chain " + k.String() }
func setRow(k plan.NFTSet) string     { return "nft set " + k.Name }
func elemRow(k plan.NFTElem) string   { return "nft elem " + k.Set + " " + k.Key }
func ruleRow(k plan.NFTRule) string   { return "nft rule " + k.Chain.String() + " [" + k.Name + "]" }

// maxName keeps comments within the 128 bytes that nft allows.
const maxName = 110

// checkName refuses names that would not survive in a comment: nft has no escapes within strings.
func checkName(name string) error {
	if name == "" || len(name) > maxName ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return fmt.Errorf("name must be 1 to %d printable ASCII characters without quotes and backslashes", maxName)
	}
	return nil
}

func ruleComment(name, text string) string { return name + " #" + ruleHash(text) }

// parseRuleComment is ruleComment backwards; ok is false for a comment that is not ours.
func parseRuleComment(c string) (name, hash string, ok bool) {
	i := strings.LastIndex(c, " #")
	if i < 0 {
		return "", "", false
	}
	return c[:i], c[i+2:], true
}

func ruleHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// object is a chain, set or map of a table, as it is recorded in the set of objects.
type object struct{ kind, name string }

func (o object) String() string { return o.kind + " " + o.name }

func (o object) losesFirst(isWanted bool) bool {
	return o.kind == "set" && plan.NFTSet{Name: o.name}.LosesFirst(isWanted)
}

// recordKey is the key that stands for an object of that definition, spelled as an IPv6 address: a 128-bit hash.
func (o object) recordKey(definition string) string {
	sum := sha256.Sum256([]byte(o.String() + "|" + definition))
	return netip.AddrFrom16([16]byte(sum[:16])).String()
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// spellKey is an element's key or value in the spelling in which nft lists it. Parts are joined by " . ".
func spellKey(s string) string {
	parts := strings.Split(s, " . ")
	for i, p := range parts {
		parts[i] = spellPart(p)
	}
	return strings.Join(parts, " . ")
}

func spellPart(s string) string {
	s = strings.Trim(s, `"`)
	if a, err := netip.ParseAddr(s); err == nil {
		return a.String()
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		if p.IsSingleIP() {
			return p.Addr().String()
		}
		return p.Masked().String()
	}
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return strconv.FormatUint(n, 10)
		}
	}
	return s
}

// splitParts returns the parts of a spelled key or value as nft reads them, quoted where they could be taken for
// syntax.
func splitParts(s string) []string {
	p := strings.Split(s, " . ")
	for i := range p {
		if needsQuotes(p[i]) {
			p[i] = `"` + p[i] + `"`
		}
	}
	return p
}

func needsQuotes(s string) bool {
	if plainWord.MatchString(s) || strings.ContainsAny(s, ":/ ") {
		return false
	}
	_, err := netip.ParseAddr(s)
	return err != nil
}

// keysOverlap says whether two spelled keys of an interval set cannot be in it at the same time.
func keysOverlap(a, b string) bool {
	pa, pb := strings.Split(a, " . "), strings.Split(b, " . ")
	if len(pa) != len(pb) {
		return false
	}
	for i := range pa {
		if !overlapPart(pa[i], pb[i]) {
			return false
		}
	}
	return true
}

func overlapPart(a, b string) bool {
	pa, okA := parsePrefix(a)
	pb, okB := parsePrefix(b)
	if okA && okB {
		return pa.Overlaps(pb)
	}
	firstA, lastA, okA := parseRange(a)
	firstB, lastB, okB := parseRange(b)
	if okA && okB {
		return firstA <= lastB && firstB <= lastA
	}
	return a == b
}

// parseRange are the first and the last of a range "FIRST-LAST", or of one number.
func parseRange(s string) (first, last uint64, ok bool) {
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	first, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	last, err = strconv.ParseUint(to, 10, 64)
	return first, last, err == nil
}

func parsePrefix(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	return p, err == nil
}
