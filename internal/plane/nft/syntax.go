package nft

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// The syntax of nft(8): a line is a command, and so is the text behind a semicolon; # begins a comment; strings have no
// escapes. The plane's transactions are such lines (knftables), with names of chains and sets as they are.

// identifier is a name without quotes: nft(8), "Lexical conventions".
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9/_.-]*$`)

// checkIdentifier says why a name of a chain or a set would be read as more than that.
func checkIdentifier(name string) error {
	if !identifier.MatchString(name) {
		return fmt.Errorf("name %q is no identifier", name)
	}
	return checkName(name)
}

func checkChain(k plan.NFTChain, s plan.NFTChainSpec) error {
	errs := []error{checkIdentifier(k.Name)}
	for _, word := range []string{s.Type, s.Hook, s.Priority, s.Policy} {
		errs = append(errs, plane.CheckWord("chain's definition", word), plane.CheckText("chain's definition", word,
			"{}"))
	}
	if s.Device != "" {
		errs = append(errs, plane.CheckDevice(s.Device))
	}
	return errors.Join(errs...)
}

// checkRule also refuses quotes that have no end: the text behind the rule would be part of it.
func checkRule(text string) error {
	if err := plane.CheckText("rule", text, ";#\\"); err != nil {
		return err
	}
	if text == "" || strings.Count(text, `"`)%2 != 0 || strings.Count(text, "{") != strings.Count(text, "}") {
		return fmt.Errorf("rule %q is empty, or has quotes or braces without an end", text)
	}
	return nil
}

func checkSet(name string, s plan.NFTSetSpec) error {
	if name == recordSet {
		return fmt.Errorf("%s is the plane's own set", recordSet)
	}
	const more = "\"',;\\#{}"
	return errors.Join(checkIdentifier(name), plane.CheckText("set's type", s.Key, more),
		plane.CheckText("set's type", s.Value, more))
}

// checkElem: parts that could be taken for syntax are quoted by the plane, so that quotes are all that a part cannot
// have.
func checkElem(key, value string) error {
	const more = ",;\\#{}"
	for _, part := range append(strings.Split(key, " . "), strings.Split(value, " . ")...) {
		if err := plane.CheckText("element", part, more+" "); err != nil {
			return err
		}
		if inner := strings.TrimSuffix(strings.TrimPrefix(part, `"`), `"`); strings.Contains(inner, `"`) {
			return fmt.Errorf("element %q has quotes in it", part)
		}
	}
	if key == "" {
		return errors.New("an element without a key")
	}
	return nil
}
