// Package docstest holds the generated parts of docs/reference.md to the source.
//
// In: the name of a part, and its text as the source has it. Out: a test failure if the page has another text; with
// the flag -update, the page.
package docstest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of docs/reference.md")

const page = "docs/reference.md"

// ReadPage returns docs/reference.md and its path, from whatever folder of the module.
func ReadPage(t *testing.T) (text, path string) {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		path = filepath.Join(folder, page)
		if content, err := os.ReadFile(path); err == nil {
			return string(content), path
		}
	}
	t.Fatalf("%s is in no folder above", page)
	return "", ""
}

// ComparePart fails the test unless the page has want between the marks of the part.
func ComparePart(t *testing.T, part, want string) {
	t.Helper()
	text, path := ReadPage(t)
	begin, end := "<!-- generated: "+part+" -->\n", "<!-- end of "+part+" -->\n"
	before, rest, hasBegin := strings.Cut(text, begin)
	have, after, hasEnd := strings.Cut(rest, end)
	switch want = "\n" + want + "\n"; {
	case !hasBegin || !hasEnd:
		t.Fatalf("%s lacks the lines %q and %q", page, begin, end)
	case have == want:
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("part %s of %s is not as the source has it: run this test with -update, and read the difference",
			part, page)
	}
}

// Row returns a line of a table.
func Row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "<", `\<`).Replace(strings.Join(strings.Fields(c), " "))
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// printsFlags is the environment variable by which a test's program becomes the program that it tests.
const printsFlags = "DOCSTEST_PRINTS_FLAGS"

// AsProgram runs program, which prints its flags and exits, where CompareFlags has started this process.
func AsProgram(program func()) {
	if os.Getenv(printsFlags) != "" {
		program()
		os.Exit(0)
	}
}

var (
	flagLine    = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?(?:\n    )?\t(.*)$`)
	defaultText = regexp.MustCompile(` \(default (.*)\)$`)
)

// CompareFlags holds the part of a program's flags to what its --help prints. The test's TestMain calls AsProgram.
func CompareFlags(t *testing.T, part string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = []string{printsFlags + "=1"}
	var help bytes.Buffer
	c.Stdout, c.Stderr = &help, &help
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, help.String())
	}
	table := Row("flag", "default", "meaning") + "|---|---|---|\n"
	for _, m := range flagLine.FindAllStringSubmatch(help.String(), -1) {
		byDefault := ""
		if d := defaultText.FindStringSubmatch(m[3]); d != nil {
			byDefault = "`" + strings.Trim(d[1], `"`) + "`"
		}
		table += Row(strings.TrimSpace(fmt.Sprintf("`--%s` %s", m[1], m[2])), byDefault,
			defaultText.ReplaceAllString(m[3], ""))
	}
	ComparePart(t, part, table)
}
