package kube

import (
	"log/slog"
	"testing"
	"time"
)

// TestListForgetsNoEnd: an answer to a request lacked an object, and the watch begins again with a list before it has
// brought the end. What is seen still names a version after the end.
func TestListForgetsNoEnd(t *testing.T) {
	_, table, _ := namespaces()
	must(t, table.Replace([]any{namespace("a", "70", "x"), namespace("b", "60", "x")}, "80"))
	table.removeUnlisted("", "100", map[string]bool{"b": true})
	if seen := table.seenVersion(); seen != "100" {
		t.Errorf("before the list: %s", seen)
	}
	must(t, table.Replace([]any{namespace("b", "60", "x")}, "120"))
	if seen := table.seenVersion(); Older(seen, "100") {
		t.Errorf("after the list: %s", seen)
	}
}

// TestLoopWaitsForNoTable: the loop that takes changes asks whether pods were seen while a table waits for it.
func TestLoopWaitsForNoTable(t *testing.T) {
	source := NewSource(nil, slog.New(slog.DiscardHandler), Pods())
	table := source.tables[0]
	table.mu.Lock()
	defer table.mu.Unlock()
	answered := make(chan bool)
	go func() { answered <- source.SeenPods() }()
	select {
	case <-answered:
	case <-time.After(10 * time.Second):
		t.Fatal("no answer")
	}
}
