package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// skip is one test that skipped, and what it said.
type skip struct{ pkg, test, words string }

// entry is one line of the list: in these runs, these tests may skip with these words.
type entry struct {
	runs   []string
	tests  string // a pattern of path.Match, of the test without its subtests
	words  string // a part of what the test says
	mayNot bool   // the skip depends on the machine, so that an entry that matches nothing is not told
	line   string
}

func (e entry) String() string { return e.line }

// parse reads the list: RUN,... | TESTS | WORDS | WHY. A question mark before the first RUN sets mayNot.
func parse(text string) ([]entry, error) {
	var out []entry
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, "|")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		if len(parts) != 4 || slices.Contains(parts, "") {
			return nil, fmt.Errorf("line %q of the list is not RUN,... | TESTS | WORDS | WHY", line)
		}
		runs, mayNot := strings.CutPrefix(parts[0], "?")
		if _, err := path.Match(parts[1], ""); err != nil {
			return nil, fmt.Errorf("line %q of the list: %w", line, err)
		}
		out = append(out, entry{runs: strings.Split(runs, ","), tests: parts[1], words: parts[2], mayNot: mayNot,
			line: line})
	}
	return out, nil
}

// allows says whether a test may skip so in a run.
func (e entry) allows(run string, s skip) bool {
	top, _, _ := strings.Cut(s.test, "/")
	matches, _ := path.Match(e.tests, top)
	return matches && slices.Contains(e.runs, run) && strings.Contains(s.words, e.words)
}

// verdict is what is to say about the skips of a run.
type verdict struct {
	listed   int
	unlisted []skip
	unused   []entry // entries for this run that no skip needed
}

// judge compares the skips of a run with the list.
func judge(list []entry, run string, skips []skip) verdict {
	var v verdict
	used := make([]bool, len(list))
	for _, s := range skips {
		i := slices.IndexFunc(list, func(e entry) bool { return e.allows(run, s) })
		if i < 0 {
			v.unlisted = append(v.unlisted, s)
			continue
		}
		used[i] = true
		v.listed++
	}
	for i, e := range list {
		if !used[i] && !e.mayNot && slices.Contains(e.runs, run) {
			v.unused = append(v.unused, e)
		}
	}
	return v
}
