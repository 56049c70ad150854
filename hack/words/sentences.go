package main

import (
	"regexp"
	"strings"
)

// sentenceEnd is a full stop, question mark or exclamation mark with white space behind it and no abbreviation before.
var sentenceEnd = regexp.MustCompile(`([.?!])\s+`)

var abbreviations = []string{"e.g.", "i.e.", "cf.", "vs.", "etc."}

// splitSentences returns the sentences of a text, each on one line and with at least three words.
func splitSentences(text string) []string {
	var all []string
	for _, paragraph := range strings.Split(text, "\n\n") {
		begin := 0
		flat := strings.Join(strings.Fields(paragraph), " ")
		for _, end := range sentenceEnd.FindAllStringIndex(flat, -1) {
			if endsWithAbbreviation(flat[begin : end[0]+1]) {
				continue
			}
			all = appendSentence(all, flat[begin:end[0]+1])
			begin = end[1]
		}
		all = appendSentence(all, flat[begin:])
	}
	return all
}

func appendSentence(all []string, s string) []string {
	if len(strings.Fields(s)) < 3 {
		return all
	}
	return append(all, s)
}

func endsWithAbbreviation(s string) bool {
	for _, a := range abbreviations {
		if strings.HasSuffix(s, a) {
			return true
		}
	}
	return false
}
