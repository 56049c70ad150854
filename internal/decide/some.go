package decide

import (
	"fmt"
	"strings"
)

// MostNamed is how much of a list people are told.
const MostNamed = 5

// Some is a list for people.
func Some(list []string) string { return joinSome(list, ", ") }

// SomeTexts is a list of texts that have commas themselves.
func SomeTexts(list []string) string { return joinSome(list, "; ") }

func joinSome(list []string, separator string) string {
	return someOf(list[:min(len(list), MostNamed)], len(list), separator)
}

// SomeOf is a list for people of so many, of which the first MostNamed are enough: to make a text of each can take
// long.
func SomeOf(first []string, all int) string { return someOf(first, all, ", ") }

func someOf(first []string, all int, separator string) string {
	text := strings.Join(first, separator)
	if more := all - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Unasked returns the words about nodes that have not confirmed a message and cannot be asked; "" without such nodes.
func Unasked(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return "; not known of " + Some(nodes) + ", not ready or not reached, where pods may send as before"
}
