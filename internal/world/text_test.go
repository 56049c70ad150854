package world_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/egret-net/egret/internal/world"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"as it is":                     "as it is",
		"0123456789":                   "0123456789",
		"0123456789a":                  "0123456...",
		"a\nb\r\x00\x1b[c":             "a b   [c",
		"\xff\xfe a":                   "  a",
		"right\u202eleft":              "right left",
		"äöüäöüäöüä":                   "äöüäöüäöüä",
		"äöüäöüäöüäö":                  "äöüäöüä...",
		strings.Repeat("long ", 20000): "long lo...",
	} {
		have := world.Plain(text, 10)
		if have != want || !utf8.ValidString(have) {
			t.Errorf("%.20q: have %q, want %q", text, have, want)
		}
	}
}
