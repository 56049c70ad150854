package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInNames = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksResolve: pages link to files and headings that exist.
func TestLinksResolve(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md",
		"docs/*/*.md", "internal/*/README.md", "internal/*/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(prose(t, page), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, ":") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(prose(t, target)), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", page, m[1])
			}
		}
	}
}

// prose returns a page without its code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return codeBlock.ReplaceAllString(string(text), "")
}

// anchors returns the names by which a page's headings are linked to.
func anchors(text string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(notInNames.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return names
}
