package plan_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestNames holds all names of the default network and of another one to a golden file.
func TestNames(t *testing.T) {
	got := all(t, plan.DefaultNames()) + all(t, plan.Names{Network: "team-a_blue", ID: 7})
	const file = "testdata/names.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("names are not those of %s:\n%s", file, got)
	}
}

// TestNamesDiffer: two networks have no name and no number in common.
func TestNamesDiffer(t *testing.T) {
	seen := map[string]string{}
	others := []plan.Names{{Network: "team-a_blue", ID: 1}, {Network: "cluster_udn_blue", ID: 2}}
	for _, n := range append(others, plan.DefaultNames()) {
		for line := range strings.Lines(all(t, n)) {
			_, call, _ := strings.Cut(line, " ")
			if seen[call] != "" {
				t.Errorf("%s and %s both have %s", n.Network, seen[call], call)
			}
			seen[call] = n.Network
		}
	}
}

// TestRowsOfNetworksDiffer: networks with different names have no row in common, whatever the names; what
// OVN-Kubernetes calls the rows of a network with a common name stays.
func TestRowsOfNetworksDiffer(t *testing.T) {
	for network, want := range map[string]string{
		"team-a_blue": "team.a_blue_join", "cluster_udn_blue": "cluster_udn_blue_join",
		"a.b": "aX2eb_join", "a-b": "a.b_join", "a/b": "aX2fb_join", "aX2eb": "aX582eb_join",
	} {
		if have := (plan.Names{Network: network, ID: 1}).JoinSwitch(); have != want {
			t.Errorf("%s: %s, want %s", network, have, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.SampledFrom([]rune("a2ebX-._/Ä")), 1, 5, -1)
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		if have := (plan.Names{Network: a}).Row("join"); a != b && have == (plan.Names{Network: b}).Row("join") {
			t.Fatalf("networks %q and %q both have %s", a, b, have)
		}
		if link := (plan.Names{Network: a}).LinkToNetwork("n_1"); plan.LinkedNetwork(link, "n_1") != a {
			t.Fatalf("%s leads to %q, want %q", link, plan.LinkedNetwork(link, "n_1"), a)
		}
	})
}

// all calls every method, each string parameter with a text of its own: a new method is in the golden file at once.
func all(t *testing.T, n plan.Names) string {
	t.Helper()
	var out strings.Builder
	v := reflect.ValueOf(n)
	for i := range v.NumMethod() {
		m := v.Method(i)
		var args []reflect.Value
		for a := range m.Type().NumIn() {
			if m.Type().In(a).Kind() != reflect.String {
				t.Fatalf("%s takes something else than text", v.Type().Method(i).Name)
			}
			args = append(args, reflect.ValueOf([]string{"n1", "x"}[a]))
		}
		fmt.Fprintf(&out, "%s %s %v\n", n.Network, v.Type().Method(i).Name, m.Call(args)[0])
	}
	return out.String()
}
