package plane

import (
	"errors"
	"fmt"
	"strings"
)

// Texts of rows become part of what other programs parse: a line of ovs-ofctl, a rule of nft, a match of OVN, a path
// below /proc/sys. Each plane refuses text that would end the part of a row that it was meant to be, even if other code
// has parsed the row before.

// CheckText says why a text is not one line of printable ASCII, or holds one of the characters in but.
func CheckText(what, text, but string) error {
	i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(but, r) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s %q has a character that it cannot have, at byte %d: find out who wrote it, and mend it there",
		what, clipText(text), i)
}

// clipText keeps errors short.
func clipText(text string) string {
	const limit = 200
	return text[:min(len(text), limit)]
}

// CheckWord is CheckText for what stands alone among separators: it has no spaces, quotes, commas, semicolons,
// backslashes nor #.
func CheckWord(what, text string) error { return CheckText(what, text, " \"',;\\#") }

// CheckDevice says why a text cannot be the name of a network device (Linux 6, net/core/dev.c, dev_valid_name), or
// would be read as more than one: iptables takes + at the end for any characters, nft takes *.
func CheckDevice(name string) error {
	const ifnamsiz = 16
	if name == "" || len(name) >= ifnamsiz || name == "." || name == ".." || strings.HasPrefix(name, "-") {
		return fmt.Errorf("%q is no name of a network device", clipText(name))
	}
	return errors.Join(CheckWord("device name", name), CheckText("device name", name, "/:*+"))
}
