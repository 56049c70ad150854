package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostSteps is how many functions one walk has at most.
const mostSteps = 10

var step = regexp.MustCompile("(?m)^(\\d+)\\. `([^`]+\\.go)` `(\\w+)`: ")

// TestWalksAreTrue: the walks of docs/architecture.md name functions that are in the files they name, ten a walk.
func TestWalksAreTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Four walks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	walks := regexp.MustCompile(`(?m)^\*\*.*\*\*$`).Split(section, -1)[1:]
	if len(walks) != 4 {
		t.Fatalf("docs/architecture.md has %d walks, want 4", len(walks))
	}
	for i, walk := range walks {
		steps := step.FindAllStringSubmatch(walk, -1)
		if n := len(steps); n == 0 || n > mostSteps || n != strings.Count(walk, "\n")-strings.Count(walk, "\n\n")-1 {
			t.Errorf("walk %d has %d steps, want 1 to %d and no other lines", i+1, n, mostSteps)
		}
		for _, s := range steps {
			if !slices.Contains(declared(t, s[2]), s[3]) {
				t.Errorf("walk %d, step %s: %s has no function %s", i+1, s[1], s[2], s[3])
			}
		}
	}
}

// declared are the names of a file's functions and methods.
func declared(t *testing.T, path string) []string {
	t.Helper()
	var names []string
	for name := range functions(t, filepath.Join(root, path)) {
		names = append(names, name)
	}
	return names
}
