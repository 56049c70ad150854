package decide_test

import (
	"fmt"
	"testing"

	"github.com/egret-net/egret/internal/decide"
)

// TestMessages: what several notices have in common is said once, where the first of them is; the others are apart.
func TestMessages(t *testing.T) {
	why := func(message, why string) decide.Notice { return decide.Notice{Message: message, Why: why} }
	many := []decide.Notice{}
	for i := range 8 {
		many = append(many, why(fmt.Sprintf("n%d waits", i), "no table"))
	}
	for want, notices := range map[string][]decide.Notice{
		"":                         nil,
		"n1 waits; n2 waits":       {why("n1 waits", ""), why("n2 waits", "")},
		"n1 waits, n1 is late: no": {why("n1 waits", "no"), why("n1 is late", "no")},
		"n1 waits, n3 waits: no; n2 waits; n4 waits: never": {why("n1 waits", "no"), why("n2 waits", ""),
			why("n3 waits", "no"), why("n4 waits", "never")},
		"n0 waits, n1 waits, n2 waits, n3 waits, n4 waits and 3 more: no table": many,
	} {
		if have := decide.Messages(notices); have != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}
