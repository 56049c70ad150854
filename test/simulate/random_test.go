//go:build !race

package simulate

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNoWrongSource tells random stories: whoever dies, hangs or is cut off, no pod's packet leaves with a source that
// no claim of that very pod gives it, and all are served once all is well. With SIMULATE_TIME it goes on for so long,
// on all processors.
func TestNoWrongSource(t *testing.T) {
	t.Parallel()
	text := os.Getenv("SIMULATE_TIME")
	if text == "" {
		rapid.Check(t, tellOne)
		return
	}
	goesOn, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(goesOn)
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for !t.Failed() && time.Now().Before(end) {
				rapid.Check(t, tellOne)
			}
		})
	}
}

// tellOne tells one story.
func tellOne(t *rapid.T) {
	seed, story := rapid.Uint64().Draw(t, "seed"), drawStory(t)
	if r := Run(seed, story); r.Wrong != "" {
		t.Fatalf("%s\nseed %d\n%s", r.Wrong, seed, story)
	}
}

// drawStory draws the cluster's objects, and what happens to them.
func drawStory(t *rapid.T) string {
	var lines []string
	if rapid.Bool().Draw(t, "local gateway mode") {
		lines = append(lines, localMark)
	}
	lines = append(lines, "0s assignable n3 yes", "0s reuse "+oneOf(t, []string{"0s", "5s"}))
	for _, name := range []string{"a", "b"} {
		lines = append(lines, fmt.Sprintf("0s egressip %s %s %s", name, name, oneOf(t, layouts)))
	}
	if rapid.Bool().Draw(t, "by destination") {
		lines = append(lines, "0s traffic t x", "0s traffic u y", "0s narrow a t", "0s narrow b u")
	}
	if rapid.Bool().Draw(t, "with Services") {
		lines = append(lines, "0s service s s 0", "0s egressservice s", "0s service t t 0", "0s egressservice t")
	}
	if rapid.Bool().Draw(t, "second holder") {
		lines = append(lines, "0s assignable n2 yes")
	}
	started, text := pods[:2], strings.NewReplacer("blue/", "", "red/", "")
	if rapid.Bool().Draw(t, "with networks") {
		lines = append(lines, "0s network blue 1", "0s network red 2")
		started, text = pods, strings.NewReplacer()
	}
	for _, name := range started {
		lines = append(lines, fmt.Sprintf("2s pod %s %s %s", name, oneOf(t, nodes), oneOf(t, groups)))
	}
	var events []incident
	for range 14 {
		if rapid.IntRange(0, 2).Draw(t, "nothing") > 0 {
			events = append(events, drawIncidents(t)...)
		}
	}
	slices.SortStableFunc(events, func(a, b incident) int { return int(a.at - b.at) })
	for _, e := range events {
		lines = append(lines, fmt.Sprint(6*time.Second+e.at, " ", e.what))
	}
	return text.Replace(strings.Join(lines, "\n"))
}

// incident is a line of a story.
type incident struct {
	at   time.Duration
	what string
}

func oneOf(t *rapid.T, words []string) string { return rapid.SampledFrom(words).Draw(t, "word") }
