// Package metricstest compares metrics with docs/metrics.md.
//
// In: a program's registry. Out: test failures that name what the page lacks.
package metricstest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// page is where a test of a package below internal finds it.
const page = "../../docs/metrics.md"

// description is how prometheus.Desc prints itself: it tells its name and labels in no other way.
var description = regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)

// Documented fails the test unless the program's section of the page has all metrics of ours, with their labels, and no
// other.
func Documented(t *testing.T, program string, r *prometheus.Registry) {
	t.Helper()
	known := map[string]bool{}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		r.Describe(descriptions)
	}()
	_, text, _ := strings.Cut(Page(t), "\n## "+program+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for d := range descriptions {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("how is %s to be read?", d)
		}
		name := m[1]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		if m[2] != "" {
			name += "{" + m[2] + "}"
		}
		known[name] = true
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/metrics.md, %q, lacks %s", program, name)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if !known[name[1]] {
				t.Errorf("docs/metrics.md, %q, has %s, which is no metric", program, name[1])
			}
		}
	}
}

// Page is docs/metrics.md.
func Page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
