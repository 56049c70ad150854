package main

import "regexp"

// constructions are the ten ways to begin or turn a sentence that make a comment hard to read. Each is what a reader of
// plain English stumbles over, not a grammar error: see docs/contributing.md.
var constructions = []*regexp.Regexp{
	regexp.MustCompile(`\bof before\b`),
	regexp.MustCompile(`\b(is|are) none\b`),
	regexp.MustCompile(`(^|[;:] )(Who|Whoever|What|who|whoever|what) [^?]*$`),
	regexp.MustCompile(`\banew\b`),
	regexp.MustCompile(`\bin the place of\b`),
	regexp.MustCompile(`\b(is|are|was|were|be) told of\b`),
	regexp.MustCompile(`\b(has|have|had) \S+( \S+)? dropped\b`),
	regexp.MustCompile(`\bof (that|those|these)[.,;:]`),
	regexp.MustCompile(`\b(is|are|was|were) to (be|have)\b`),
	regexp.MustCompile(`\b(at the most|as ever|a former one|and such)\b`),
}

// hasConstruction says whether a sentence has one of the constructions.
func hasConstruction(sentence string) bool {
	for _, c := range constructions {
		if c.MatchString(sentence) {
			return true
		}
	}
	return false
}
