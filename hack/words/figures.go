package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// figure is one number of a package or a page. A ceiling holds the number; the share of all is for readers.
type figure struct {
	place string // folder or page
	what  string // constructions, one-word or long
	n     int
	of    int
	where []string // a line for each of the n
}

func (f figure) key() string {
	return f.place + " " + f.what
}

// measure returns the figures of all packages and pages, sorted by place.
func measure(root string) ([]figure, error) {
	var all []figure
	for _, folder := range []string{"internal", "cmd", "api"} {
		sources, err := readSources(filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		for _, place := range slices.Sorted(maps.Keys(sources)) {
			s := sources[place]
			all = append(all, figure{place, "constructions", len(s.constructions), s.sentences, s.constructions},
				figure{place, "one-word", len(s.oneWord), s.functions, s.oneWord})
		}
	}
	pages, err := readPages(root)
	if err != nil {
		return nil, err
	}
	for _, place := range slices.Sorted(maps.Keys(pages)) {
		all = append(all, figure{place, "long", len(pages[place].long), pages[place].sentences, pages[place].long})
	}
	return all, nil
}

// compare returns what is above its ceiling: the places of each such figure, then its line. Without a ceiling it is 0,
// and for names of one word a third of the functions.
func compare(figures []figure, ceilings map[string]int) (lines []string) {
	for _, f := range figures {
		ceiling, ok := ceilings[f.key()]
		if !ok && f.what == "one-word" {
			ceiling = f.of / 3
		}
		if f.n > ceiling {
			lines = append(lines, f.where...)
			lines = append(lines, fmt.Sprintf("%s: %s: %d, at most %d", f.place, f.what, f.n, ceiling))
		}
	}
	return lines
}

func formatCeilings(figures []figure) []byte {
	var b strings.Builder
	for _, f := range figures {
		if f.n > 0 {
			fmt.Fprintf(&b, "%s %d\n", f.key(), f.n)
		}
	}
	return []byte(b.String())
}

func parseCeilings(text string) (map[string]int, error) {
	all := map[string]int{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: %q: want PLACE FIGURE NUMBER", ceilingsFile, line)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ceilingsFile, err)
		}
		all[fields[0]+" "+fields[1]] = n
	}
	return all, nil
}

func printTable(w io.Writer, figures []figure) {
	totals := map[string]figure{}
	for _, f := range figures {
		printFigure(w, f)
		t := totals[f.what]
		totals[f.what] = figure{place: "total", what: f.what, n: t.n + f.n, of: t.of + f.of}
	}
	for _, what := range slices.Sorted(maps.Keys(totals)) {
		printFigure(w, totals[what])
	}
}

func printFigure(w io.Writer, f figure) {
	if f.of > 0 {
		fmt.Fprintf(w, "%-50s %-14s %5d of %5d %5.1f %%\n", f.place, f.what, f.n, f.of, 100*float64(f.n)/float64(f.of))
	}
}
