package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs a moon\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB/x","Output":"    b_test.go:3: quiet\n"}
{"Action":"pass","Package":"p","Test":"TestB/x"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: loud\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Test":"TestD","Output":"panic: hung\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined\n"}
{"Action":"skip","Package":"without"}
go: a warning
`

func TestRead(t *testing.T) {
	var quiet, verbose bytes.Buffer
	skips, err := read(strings.NewReader(events), newPrinter(&quiet, false))
	if want := []skip{{"p", "TestA", "a_test.go:3: needs a moon"}}; err != nil || !slices.Equal(skips, want) {
		t.Errorf("skips %v, %v; want %v", skips, err, want)
	}
	if have, want := quiet.String(), "    c_test.go:3: loud\nFAIL\tp\t0.1s\npanic: hung\n"+
		"q.go:1: undefined\ngo: a warning\n"; have != want {
		t.Errorf("printed %q, want %q", have, want)
	}
	if _, err := read(strings.NewReader(events), newPrinter(&verbose, true)); err != nil ||
		!strings.Contains(verbose.String(), "quiet") || strings.Count(verbose.String(), "loud") != 1 {
		t.Errorf("printed with -v, %v: %s", err, verbose.String())
	}
}

func TestJudge(t *testing.T) {
	list, err := parse("# comment\n\nr,s | TestA | a moon | it is day\n?r | Test* | a sun | it is night\nr | TestB | a | b\n")
	if err != nil {
		t.Fatal(err)
	}
	moon := skip{"p", "TestA/x", "needs a moon"}
	for _, c := range []struct {
		why              string
		run              string
		skips            []skip
		listed, unlisted int
		unused           []string
	}{
		{"on the list", "r", []skip{moon, {"p", "TestB", "a"}}, 2, 0, nil},
		{"an entry that nothing needs", "r", []skip{moon}, 1, 0, []string{"TestB"}},
		{"another run", "other", []skip{moon}, 0, 1, nil},
		{"a run that shares an entry", "s", []skip{moon}, 1, 0, nil},
		{"other words", "s", []skip{moon, {"p", "TestA", "needs a sun"}}, 1, 1, nil},
		{"another test", "s", []skip{moon, {"p", "TestAB", "needs a moon"}}, 1, 1, nil},
		{"without words", "s", []skip{moon, {"p", "TestA", ""}}, 1, 1, nil},
	} {
		v := judge(list, c.run, c.skips)
		var unused []string
		for _, e := range v.unused {
			unused = append(unused, e.tests)
		}
		if v.listed != c.listed || len(v.unlisted) != c.unlisted || !slices.Equal(unused, c.unused) {
			t.Errorf("%s: %d listed, unlisted %v, unused %v", c.why, v.listed, v.unlisted, unused)
		}
	}
}

// TestConclude: an entry that nothing needs is told unless only some tests ran, and a skip that is not listed fails.
func TestConclude(t *testing.T) {
	v := verdict{unused: []entry{{line: "LINE"}}}
	var all, some bytes.Buffer
	if err := conclude(&all, v, false); err != nil || !strings.Contains(all.String(), "LINE") {
		t.Errorf("%v, printed %s", err, all.String())
	}
	if err := conclude(&some, v, true); err != nil || strings.Contains(some.String(), "LINE") {
		t.Errorf("of some tests: %v, printed %s", err, some.String())
	}
	v.unlisted = []skip{{"p", "TestA", "needs a moon"}}
	if err := conclude(&all, v, false); err == nil || !strings.Contains(all.String(), "needs a moon") {
		t.Errorf("%v, printed %s", err, all.String())
	}
}

// TestList: the list can be read, and a line without a reason cannot.
func TestList(t *testing.T) {
	if _, err := parse(list); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"r | TestA | words |", "r | TestA | words", "r | [ | words | why"} {
		if _, err := parse(line); err == nil {
			t.Errorf("took line %q", line)
		}
	}
}
