package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// page is what one page of the documentation counts.
type page struct {
	sentences int
	words     int
	long      []string // sentences of more than longSentence words
}

const longSentence = 30

var (
	codeBlock  = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	inlineCode = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	newItem    = regexp.MustCompile(`(?m)^\s*([-*]|\d+\.) `)
	notProse   = regexp.MustCompile(`(?m)^(\s*\||#|    ).*$`)
)

// readPages counts README.md and all pages of docs.
func readPages(root string) (map[string]page, error) {
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	all := map[string]page{}
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all[path] = countPage(string(text))
	}
	return all, nil
}

// countPage counts the prose of a page: no code, tables or headings. What stands in backquotes is one word.
func countPage(text string) (p page) {
	text = codeBlock.ReplaceAllString(text, "\n\n")
	text = notProse.ReplaceAllString(text, "\n")
	text = inlineCode.ReplaceAllString(text, "code")
	text = link.ReplaceAllString(text, "$1")
	text = newItem.ReplaceAllString(text, "\n\n")
	for _, sentence := range splitSentences(text) {
		n := len(strings.Fields(sentence))
		p.sentences++
		p.words += n
		if n > longSentence {
			p.long = append(p.long, sentence)
		}
	}
	return p
}
