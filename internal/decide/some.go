package decide

import (
	"fmt"
	"strings"
)

// MostNamed is how much of a list people are told.
const MostNamed = 5

// Some is a list for people.
func Some(list []string) string { return some(list, ", ") }

// SomeTexts is a list of texts that have commas themselves.
func SomeTexts(list []string) string { return some(list, "; ") }

func some(list []string, separator string) string {
	if n := len(list); n > MostNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:MostNamed], separator), n-MostNamed)
	}
	return strings.Join(list, separator)
}

// Unasked is what is added to a message about nodes that have not confirmed it and cannot be asked; "" where there are
// none.
func Unasked(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return "; not known of " + Some(nodes) + ", not ready or not reached, where pods may send as before"
}
