package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxFunction    = 55 // lines of any function
	medianFunction = 10 // of those in internal
	mostFunctions  = 22 // nine of ten in internal have at most so many
	maxColumns     = 120
	columnsOfTab   = 4
)

// TestFunctionsAreShort: a function that is read at one look needs no comment about its parts.
func TestFunctionsAreShort(t *testing.T) {
	var all []int
	for _, f := range files(t) {
		for name, lines := range functions(t, filepath.Join(root, f.path)) {
			if lines > maxFunction {
				t.Errorf("%s: %s has %d lines, want at most %d", f.path, name, lines, maxFunction)
			}
			if under(f.folder, "internal") {
				all = append(all, lines)
			}
		}
	}
	slices.Sort(all)
	median, most := all[len(all)/2], all[len(all)*9/10]
	t.Logf("%d functions of internal: median %d lines, nine of ten at most %d, the longest %d",
		len(all), median, most, all[len(all)-1])
	if median > medianFunction || most > mostFunctions {
		t.Errorf("functions of internal: median %d lines, nine of ten at most %d; want %d and %d",
			median, most, medianFunction, mostFunctions)
	}
}

// functions are those of a file, with their lines; two methods of one name count as the longer one.
func functions(t *testing.T, path string) map[string]int {
	t.Helper()
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, d := range parsed.Decls {
		if f, is := d.(*ast.FuncDecl); is {
			lines := positions.Position(f.End()).Line - positions.Position(f.Pos()).Line + 1
			out[f.Name.Name] = max(out[f.Name.Name], lines)
		}
	}
	return out
}

// TestLinesAreShort: lines of Go fit into 120 columns.
func TestLinesAreShort(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipped(path, d.Name())
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		for _, n := range longLines(t, path) {
			t.Errorf("%s:%d has more than %d columns", path, n, maxColumns)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// aText is what cannot be broken without making it harder to read: a directive, or a literal of half a line, such as a
// flow or JSON.
var aText = regexp.MustCompile("^\\s*// ?(go:|\\+)|`|\"(\\\\.|[^\"\\\\]){60,}\"")

var isGenerated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// longLines are the numbers of a file's lines that are too long, but for those with a text of aText or inside a raw
// string. A generated file has none.
func longLines(t *testing.T, path string) []int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if isGenerated.Match(text) {
		return nil
	}
	var out []int
	raw := false
	for i, line := range strings.Split(string(text), "\n") {
		inside := raw || aText.MatchString(line)
		raw = raw != (strings.Count(line, "`")%2 == 1)
		if !inside && utf8.RuneCountInString(strings.ReplaceAll(line, "\t",
			strings.Repeat(" ", columnsOfTab))) > maxColumns {
			out = append(out, i+1)
		}
	}
	return out
}
