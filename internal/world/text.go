package world

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ellipsis ends a text that was shortened.
const Ellipsis = "..."

// Plain is a text that others wrote as it may stand in a condition, an Event, a problem or a log: on one line, without
// control characters and invalid UTF-8, and with at most limit runes, the last of which are Ellipsis where something
// was left out.
func Plain(text string, limit int) string {
	if len(text) <= limit && isPlain(text) {
		return text
	}
	text, cut := firstRunes(text, limit)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	if !cut {
		return text
	}
	text, _ = firstRunes(text, limit-len(Ellipsis))
	return text + Ellipsis
}

// isPlain says of a text that it has nothing but printable ASCII, as nearly all have.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// firstRunes is the start of a text, and whether anything follows it: it does not look at what follows.
func firstRunes(text string, n int) (start string, cut bool) {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at], at < len(text)
}
