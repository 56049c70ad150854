package ovn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// words are columns, of any table, that hold one word or a set of them: addresses, prefixes and names that OVN takes
// apart by spaces and commas.
var words = map[string]bool{
	"mac": true, "ip": true, "external_ip": true, "logical_ip": true, "external_mac": true, "logical_port": true,
	"ip_prefix": true, "nexthop": true,
	"nexthops": true, "networks": true, "output_port": true, "chassis_name": true, "hostname": true,
}

// checkTexts says why OVN would read a row as something else than it is in the plan: ovn-northd and ovn-controller
// parse matches, actions and addresses (ovn-nb(5), ovn-sb(5), "Logical_Flow").
func checkTexts(id plan.RowID, r plan.Row) error {
	if err := plane.CheckText("name", id.Name, ""); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Cols)) {
		for _, text := range textsOf(r.Cols[name]) {
			if err := checkColumn(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkColumn(name, text string) error {
	what := "column " + name
	switch {
	case words[name]:
		return plane.CheckWord(what, text)
	case name == "match":
		if strings.Count(text, `"`)%2 != 0 {
			return fmt.Errorf("%s %q has quotes without an end", what, text)
		}
		return plane.CheckText(what, text, `\;#`)
	case name == "addresses":
		return plane.CheckText(what, text, "\"',;\\#")
	}
	return plane.CheckText(what, text, "")
}

func textsOf(v any) []string {
	switch x := v.(type) {
	case string:
		return []string{x}
	case []string:
		return x
	case map[string]string:
		return slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Values(x))
	}
	return nil
}

// checkElem takes addresses and prefixes: OVN reads the members of a set as parts of an expression.
func checkElem(e plan.SetElem) error {
	_, notAddr := netip.ParseAddr(e.Addr)
	_, notPrefix := netip.ParsePrefix(e.Addr)
	if notAddr != nil && notPrefix != nil || strings.Contains(e.Addr, "%") {
		return fmt.Errorf("%q is neither an address nor a prefix", e.Addr)
	}
	return nil
}

// wellFormed are the changes but those that add what is no element.
func wellFormed(cs []change) (good []change, bad []refusal) {
	good = slices.DeleteFunc(cs, func(c change) bool {
		if c.w != nil || c.row != nil || c.del {
			return false
		}
		err := checkElem(c.elem)
		if err != nil {
			bad = append(bad, refusal{c, err})
		}
		return err != nil
	})
	return good, bad
}
