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

// Documented fails the test unless the page has all metrics of ours, with their labels.
func Documented(t *testing.T, r *prometheus.Registry) {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		r.Describe(descriptions)
	}()
	text := Page(t)
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
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/metrics.md lacks %s", name)
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
