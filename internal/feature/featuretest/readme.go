package featuretest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// checkReadme compares the blocks of a feature's README.md that are fenced as ```plan with the lines that its scripts
// print.
func checkReadme(t *testing.T, printed []string) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown, inside := 0, false
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.HasPrefix(l, "```"):
			inside = l == "```plan"
		case inside && !slices.Contains(printed, l):
			t.Errorf("README.md shows a line that no script of testdata prints:\n%s", l)
		case inside:
			shown++
		}
	}
	if shown == 0 {
		t.Error("README.md shows no line of a plan: fence some as ```plan")
	}
}
