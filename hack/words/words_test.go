package main

import (
	"slices"
	"strings"
	"testing"
)

func TestConstructions(t *testing.T) {
	for sentence, want := range map[string]bool{
		"A reader that fails is read again.":                 false,
		"There is none of an agent of before.":               true,
		"Who starts meanwhile knows less.":                   true,
		"The row goes first; what is left goes later.":       true,
		"The table is written anew.":                         true,
		"It stands in the place of the former.":              true,
		"The controller is told of each move.":               true,
		"A node that has it dropped says so.":                true,
		"The time of that.":                                  true,
		"Its address is to be given back.":                   true,
		"At most two of the three, as whatever they name is": false,
	} {
		if got := hasConstruction(sentence); got != want {
			t.Errorf("hasConstruction(%q) = %v, want %v", sentence, got, want)
		}
	}
}

func TestSplitSentences(t *testing.T) {
	got := splitSentences("One is here, e.g. this\none. Two follows it! No.\n\nThree has no full stop")
	want := []string{"One is here, e.g. this one.", "Two follows it!", "Three has no full stop"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCountPage(t *testing.T) {
	text := "# A heading that is long\n\nSee [the page](x.md) of `a b c`.\n\n| a | table row of words |\n\n" +
		"```sh\nmany words of code\n```\n" +
		"- an item of five words\n- " + strings.Repeat("word ", 31) + "\n"
	if got := countPage(text); got.sentences != 3 || got.words != 5+5+31 || len(got.long) != 1 {
		t.Errorf("got %+v, want 3 sentences of 41 words, of them 1 long", got)
	}
}

func TestIsOneWord(t *testing.T) {
	for name, want := range map[string]bool{"settle": true, "Of": true, "HTTP": true, "settleAll": false} {
		if got := isOneWord(name); got != want {
			t.Errorf("isOneWord(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestCompare(t *testing.T) {
	figures := []figure{
		{"a", "constructions", 3, 9, nil}, {"b", "constructions", 1, 9, []string{"b/b.go:7: Who knows."}},
		{"b", "one-word", 3, 9, nil}, {"c", "one-word", 4, 9, nil},
	}
	ceilings, err := parseCeilings("a constructions 3\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"b/b.go:7: Who knows.", "b: constructions: 1, at most 0", "c: one-word: 4, at most 3"}
	if got := compare(figures, ceilings); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := parseCeilings("a constructions\n"); err == nil {
		t.Error("a line of two fields is accepted")
	}
}
