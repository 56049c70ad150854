package featuretest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the commands of testdata/*.txtar print into the scripts")

// Run runs every script of a feature's testdata, and holds its README.md against what they print.
func Run(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata/*.txtar here (%v): write one", err)
	}
	var printed []string
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"),
			func(t *testing.T) { printed = append(printed, runFile(t, f)...) })
	}
	t.Run("README", func(t *testing.T) { checkReadme(t, printed) })
}

// runFile runs one script and returns the lines that it printed.
func runFile(t *testing.T, file string) (printed []string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := parseScript(string(archive.Comment))
	c := &cluster{files: archive.Files}
	for i := range s {
		have := c.runCommand(strings.Fields(s[i].command))
		if have != s[i].output && !*update {
			t.Errorf("%s:%d: %s\n--- want\n%s--- have\n%s", file, s[i].line, s[i].command, s[i].output, have)
		}
		s[i].output = have
		printed = append(printed, strings.Split(have, "\n")...)
	}
	if !*update {
		return printed
	}
	archive.Comment = []byte(s.String())
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
	return printed
}
