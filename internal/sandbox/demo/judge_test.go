package demo

import (
	"net/netip"
	"testing"
)

func ips(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, t := range texts {
		all = append(all, netip.MustParseAddr(t))
	}
	return all
}

func saw(texts ...string) []answer {
	var all []answer
	for _, ip := range ips(texts...) {
		all = append(all, answer{source: ip})
	}
	return all
}

func TestProblem(t *testing.T) {
	both := ips("172.18.0.33", "172.18.0.44")
	silent := answer{failure: "no answer"}
	for name, c := range map[string]struct {
		row  row
		want string
	}{
		"one of two": {row{want: both, answers: saw("172.18.0.33")}, ""},
		"both":       {row{want: both, answers: saw("172.18.0.33", "172.18.0.44")}, ""},
		"a node's": {row{want: both, answers: saw("172.18.0.33", "172.18.0.2")},
			"want 172.18.0.33 or 172.18.0.44"},
		"the pod's own":              {row{want: both, answers: saw("10.244.0.3")}, "want 172.18.0.33 or 172.18.0.44"},
		"an egress IP of a stranger": {row{want: ips("172.18.0.2"), answers: saw("172.18.0.33")}, "want 172.18.0.2"},
		"nothing":                    {row{want: both}, "no connection, want 172.18.0.33 or 172.18.0.44"},
		"silence": {row{want: both, answers: []answer{silent}},
			"no connection, want 172.18.0.33 or 172.18.0.44"},
		"one lost": {row{want: both, answers: append(saw("172.18.0.33"), silent)},
			"not every connection was answered"},
		"one lost in a move": {row{want: both, mayMiss: true, answers: append(saw("172.18.0.33"), silent)}, ""},
		"all lost in a move": {row{want: both, mayMiss: true, answers: []answer{silent}},
			"no connection, want 172.18.0.33 or 172.18.0.44"},
		"wrong in a move": {row{want: both, mayMiss: true, answers: append(saw("172.18.0.2"), silent)},
			"want 172.18.0.33 or 172.18.0.44"},
	} {
		t.Run(name, func(t *testing.T) {
			if have := c.row.problemText(); have != c.want {
				t.Errorf("have %q, want %q", have, c.want)
			}
		})
	}
}

func TestSeen(t *testing.T) {
	r := row{answers: append(append([]answer{{failure: "refused"}},
		saw("172.18.0.44", "172.18.0.33", "172.18.0.44")...), answer{failure: "refused"})}
	if have, want := r.seenText(), "172.18.0.33, 172.18.0.44 x2, refused x2"; have != want {
		t.Errorf("have %q, want %q", have, want)
	}
}

func TestUnused(t *testing.T) {
	rows := []row{{answers: saw("172.18.0.33")}, {answers: saw("172.18.0.2")}}
	have := unusedAddresses(rows, ips("172.18.0.33", "172.18.0.44"))
	if len(have) != 1 || have[0] != netip.MustParseAddr("172.18.0.44") {
		t.Errorf("have %v, want 172.18.0.44 alone", have)
	}
}
