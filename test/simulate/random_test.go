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
	lines = append(lines, "0s assignable n3 yes")
	for _, name := range []string{"a", "b"} {
		lines = append(lines, fmt.Sprintf("0s egressip %s %s %d", name, name, drawAddresses(t)))
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
	for _, name := range []string{"p", "q"} {
		lines = append(lines, fmt.Sprintf("2s pod %s %s %s", name, drawNode(t), drawGroup(t)))
	}
	var events []incident
	for range 14 {
		if rapid.IntRange(0, 2).Draw(t, "nothing") > 0 {
			events = append(events, drawEvent(t))
		}
	}
	slices.SortStableFunc(events, func(a, b incident) int { return int(a.at - b.at) })
	for _, e := range events {
		lines = append(lines, fmt.Sprint(6*time.Second+e.at, " ", e.what))
	}
	return strings.Join(lines, "\n")
}

// incident is a line of a story.
type incident struct {
	at   time.Duration
	what string
}

func drawEvent(t *rapid.T) incident {
	at := time.Duration(rapid.IntRange(0, 150).Draw(t, "at")) * 200 * time.Millisecond
	return incident{at, drawLine(t)}
}

func drawNode(t *rapid.T) string {
	return rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
}
func drawGroup(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "none", "s", "t"}).Draw(t, "group")
}
func drawPod(t *rapid.T) string  { return rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "pod") }
func drawName(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "EgressIP") }

func drawAddresses(t *rapid.T) int { return rapid.IntRange(0, 2).Draw(t, "addresses") }

// drawWords draws up to two words out of two.
func drawWords(t *rapid.T, a, b string) string {
	return rapid.SampledFrom([]string{"", a, b, a + " " + b}).Draw(t, "words")
}

func drawTraffic(t *rapid.T) string {
	name := rapid.SampledFrom([]string{"t", "u"}).Draw(t, "EgressIPTraffic")
	switch rapid.IntRange(0, 4).Draw(t, "what of traffic") {
	case 0:
		return "forget-traffic " + name
	case 1, 2:
		return fmt.Sprintf("narrow %s %s", drawName(t), drawWords(t, "t", "u"))
	}
	return fmt.Sprintf("traffic %s %s", name, drawWords(t, "x", "y"))
}

func drawService(t *rapid.T) string {
	name := rapid.SampledFrom([]string{"s", "t"}).Draw(t, "Service")
	what := rapid.IntRange(0, 5).Draw(t, "what of a Service")
	if what == 5 {
		return fmt.Sprintf("choose %s %s", name, drawWords(t, drawNode(t), ""))
	}
	if what > 2 {
		return fmt.Sprintf("service %s %s %d", name, drawGroup(t), rapid.IntRange(0, 1).Draw(t, "ingress"))
	}
	return []string{"egressservice ", "forget-egressservice ", "forget-service "}[what] + name
}

var kinds = []string{"nodes", "pods", "egressips", "namespaces", "egressnodes", "services", "egressservices",
	"egressiptraffics"}

func drawSpan(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int{1, 3, 10, 30, 70}).Draw(t, "seconds")) * time.Second
}

func drawLine(t *rapid.T) string {
	switch rapid.IntRange(0, 20).Draw(t, "what") {
	case 0, 1, 2:
		return fmt.Sprintf("relabel %s %s", drawPod(t), drawGroup(t))
	case 3, 4:
		return fmt.Sprintf("pod %s %s %s", drawPod(t), drawNode(t), drawGroup(t))
	case 5:
		return "delete " + drawPod(t)
	case 6:
		return "force " + drawPod(t)
	case 7:
		return fmt.Sprintf("egressip %s %s %d", drawName(t), drawGroup(t), drawAddresses(t))
	case 8:
		return "forget " + drawName(t)
	case 9:
		return "namespace " + rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tenant")
	case 10:
		return fmt.Sprintf("assignable %s %s", drawNode(t), rapid.SampledFrom([]string{"yes", "no"}).Draw(t, "is"))
	case 11:
		return fmt.Sprintf("kill %s %v", drawNode(t), drawSpan(t))
	case 12:
		return fmt.Sprintf("hang %s %v", drawNode(t), drawSpan(t))
	case 14, 15:
		return drawTraffic(t)
	case 16, 17:
		return drawService(t)
	case 13:
		return fmt.Sprintf("cut %s %v", drawNode(t), drawSpan(t))
	}
	switch rapid.IntRange(0, 10).Draw(t, "which") {
	case 8:
		return fmt.Sprintf("stall %s %v", drawNode(t), drawSpan(t))
	case 6, 7:
		return fmt.Sprintf("late %s %s %v", drawNode(t), rapid.SampledFrom(kinds).Draw(t, "watch"), drawSpan(t))
	case 5:
		return fmt.Sprintf("rename %s %v", drawNode(t), drawSpan(t))
	case 0:
		return fmt.Sprintf("reboot %s %v", drawNode(t), drawSpan(t))
	case 1:
		return fmt.Sprintf("isolate %s %v", drawNode(t), drawSpan(t))
	case 2:
		return fmt.Sprintf("clock %s %s", drawNode(t), rapid.SampledFrom([]string{"1h", "-1h", "5s"}).Draw(t, "set"))
	case 4:
		return rapid.SampledFrom([]string{"backup", "restore"}).Draw(t, "etcd")
	case 3:
		return fmt.Sprintf("%s %s", rapid.SampledFrom([]string{"remember", "overwrite"}).Draw(t, "report"), drawNode(t))
	}
	what := rapid.SampledFrom([]string{"kill", "hang"}).Draw(t, "fault of a controller")
	return fmt.Sprintf("controller-%s n%d %v", what, rapid.IntRange(1, 2).Draw(t, "node"), drawSpan(t))
}
