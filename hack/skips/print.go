package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is a line that go test -json prints, see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

type unit struct{ pkg, test string }

// printer prints events as go test would have: all output with -v, else that of packages and of tests that failed.
type printer struct {
	out     io.Writer
	verbose bool
	said    map[unit]*strings.Builder // of tests that have not ended
	skips   []skip
}

func newPrinter(out io.Writer, verbose bool) *printer {
	return &printer{out: out, verbose: verbose, said: map[unit]*strings.Builder{}}
}

// take prints a line of go test -json. A line that is not JSON is shown as it is.
func (p *printer) take(line []byte) {
	var e event
	if line[0] != '{' || json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(p.out, "%s", line)
		return
	}
	u := unit{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		p.note(u, e)
	case "skip":
		if e.Test != "" { // else a package without tests
			p.skips = append(p.skips, skip{e.Package, e.Test, words(p.said[u])})
		}
		delete(p.said, u)
	case "pass":
		delete(p.said, u)
	case "fail":
		p.tell(u)
	}
}

// note prints an output, or keeps it until its test has ended.
func (p *printer) note(u unit, e event) {
	if p.verbose || e.Test == "" && !strings.HasPrefix(e.Output, "PASS") {
		fmt.Fprint(p.out, e.Output)
	}
	if e.Test == "" {
		return
	}
	if p.said[u] == nil {
		p.said[u] = &strings.Builder{}
	}
	p.said[u].WriteString(e.Output)
}

// tell prints what a test that failed has said, of a package that failed what tests that did not end have said.
func (p *printer) tell(u unit) {
	for of, text := range p.said {
		if of.pkg != u.pkg || u.test != "" && of.test != u.test {
			continue
		}
		if !p.verbose {
			fmt.Fprint(p.out, text)
		}
		delete(p.said, of)
	}
}

// words is what a test that skipped said, on one line.
func words(said *strings.Builder) string {
	if said == nil {
		return ""
	}
	var out []string
	for line := range strings.Lines(said.String()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, " ")
}
