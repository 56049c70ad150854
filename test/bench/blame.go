package main

import (
	"context"
	"strings"
	"time"
)

// blame prints what Egret's programs on all nodes have logged since a time: a connection that broke against all
// expectation cannot be looked into afterwards.
func (s *site) blame(ctx context.Context, say func(string, ...any), why string, since time.Time) {
	say("%s; since %s the nodes said:", why, since.UTC().Format(time.RFC3339Nano))
	for _, line := range s.logged(ctx, say, since) {
		say("%s", line)
	}
}

// logged are the lines of Egret's programs on all nodes since a time, each after the name of its node.
func (s *site) logged(ctx context.Context, say func(string, ...any), since time.Time) []string {
	var out []string
	for _, n := range s.Nodes() {
		text, err := s.ExecIn(ctx, n.Name, "sh", "-c",
			"tail -n 1000 -v /var/log/egret/egret-node.log /var/log/egret/egret-controller.log 2>/dev/null || true")
		if err != nil {
			say("%s: %v", n.Name, err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if at := loggedAt(line); !at.Before(since) {
				out = append(out, n.Name+": "+line)
			}
		}
	}
	return out
}

// loggedAt is the time of a line of slog's text form; zero if it has none.
func loggedAt(line string) time.Time {
	text, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}
