package featuretest

import (
	"fmt"
	"strings"
)

// script is commands in order.
type script []step

// step is a command, what stands before it (blank lines, comments), and its output, each line with its end.
type step struct {
	line            int
	before, command string
	output          string
}

const indent = "    "

func parseScript(text string) script {
	var s script
	before := ""
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case l == "" || strings.HasPrefix(l, "#"):
			before += l + "\n"
		case strings.HasPrefix(l, indent) && len(s) > 0:
			s[len(s)-1].output += strings.TrimPrefix(l, indent) + "\n"
		default:
			s = append(s, step{line: i + 1, before: before, command: l})
			before = ""
		}
	}
	if before != "" {
		s = append(s, step{before: before})
	}
	return s
}

// String is the text that parse read, with the outputs as they are now.
func (s script) String() string {
	var b strings.Builder
	for _, p := range s {
		b.WriteString(p.before)
		if p.command != "" {
			fmt.Fprintln(&b, p.command)
		}
		for l := range strings.Lines(p.output) {
			b.WriteString(indent + l)
		}
	}
	return b.String()
}
