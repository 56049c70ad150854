package forward

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Fake is FORWARD and INPUT of both families in memory, as the commands show them.
type Fake struct {
	Rules  map[bool][]string // by v6: `FORWARD -i …`, in order
	Writes int
	Fail   error // of the next write, once
}

// Run understands -S, -C, -I and -D.
func (f *Fake) Run(_ context.Context, v6 bool, args ...string) (string, error) {
	if f.Rules == nil {
		f.Rules = map[bool][]string{}
	}
	if args[0] == "-S" {
		out := "-P " + args[1] + " DROP\n"
		for _, r := range f.Rules[v6] {
			if strings.HasPrefix(r, args[1]+" ") {
				out += "-A " + r + "\n"
			}
		}
		return out, nil
	}
	rule := strings.Join(args[1:], " ")
	i := slices.Index(f.Rules[v6], rule)
	missing := fmt.Errorf("iptables: Bad rule (does a matching rule exist in that chain?)")
	if args[0] == "-C" && i >= 0 {
		return "", nil
	} else if args[0] == "-C" {
		return "", missing
	}
	if err := f.Fail; err != nil {
		f.Fail = nil
		return "", err
	}
	f.Writes++
	if args[0] == "-I" {
		f.Rules[v6] = slices.Insert(f.Rules[v6], 0, rule)
		return "", nil
	}
	if i < 0 {
		return "", missing
	}
	f.Rules[v6] = slices.Delete(f.Rules[v6], i, i+1)
	return "", nil
}
