// Package metricstest compares metrics with docs/metrics.md, and with the conventions of Prometheus.
//
// In: a program's registry. Out: test failures that name what the page lacks, or what is against a convention.
package metricstest

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

// page is where a test of a package below internal finds it.
const page = "../../docs/metrics.md"

// description is how prometheus.Desc prints itself: it tells its name, help and labels in no other way.
var description = regexp.MustCompile(`fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*").*variableLabels: \{([^}]*)\}`)

// Documented fails the test unless the program's section of the page has all metrics of ours, with their labels and
// kinds, and no other. It fails also where a metric is against a convention of Prometheus (promlint).
func Documented(t *testing.T, program string, r *prometheus.Registry) {
	t.Helper()
	page, known, families := rowsOf(t, program), map[string]bool{}, []*dto.MetricFamily{}
	for _, d := range ReadDescriptions(t, r) {
		known[d.NameWithLabels()] = true
		kind, is := page[d.NameWithLabels()]
		if !is {
			t.Errorf("docs/metrics.md, %q, lacks %s", program, d.NameWithLabels())
			continue
		}
		families = append(families, d.asFamily(t, kind))
	}
	for title := range page {
		if !known[title] {
			t.Errorf("docs/metrics.md, %q, has %s, which is no metric", program, title)
		}
	}
	lintFamilies(t, families)
	compareKinds(t, r, page)
}

// rowsOf returns the kinds of the metrics in a program's section of the page, by their titles.
func rowsOf(t *testing.T, program string) map[string]string {
	t.Helper()
	_, text, _ := strings.Cut(Page(t), "\n## "+program+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	kinds := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \| ([^|]*) \|`).FindAllStringSubmatch(text, -1) {
		of := strings.Split(row[2], ", ")
		for i, title := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			kinds[title[1]] = of[min(i, len(of)-1)]
		}
	}
	return kinds
}

// Description is what a metric says of itself.
type Description struct {
	Name, Help string
	Labels     []string
}

// ReadDescriptions returns the descriptions of a registry's metrics, but for those that Prometheus' library has.
func ReadDescriptions(t *testing.T, r *prometheus.Registry) (out []Description) {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		r.Describe(descriptions)
	}()
	for d := range descriptions {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("how is %s to be read?", d)
		}
		if strings.HasPrefix(m[1], "go_") || strings.HasPrefix(m[1], "process_") {
			continue
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			t.Fatalf("help of %s: %v", d, err)
		}
		labels := strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })
		out = append(out, Description{m[1], help, labels})
	}
	return out
}

// NameWithLabels is how the page names the metric.
func (d Description) NameWithLabels() string {
	if len(d.Labels) == 0 {
		return d.Name
	}
	return d.Name + "{" + strings.Join(d.Labels, ",") + "}"
}

// asFamily returns the metric with one series, as promlint looks at it.
func (d Description) asFamily(t *testing.T, kind string) *dto.MetricFamily {
	t.Helper()
	value, is := dto.MetricType_value[strings.ToUpper(kind)]
	if !is {
		t.Errorf("docs/metrics.md: %q of %s is no kind of metric", kind, d.Name)
	}
	one := &dto.Metric{Counter: &dto.Counter{}, Gauge: &dto.Gauge{}, Histogram: &dto.Histogram{}}
	for _, l := range d.Labels {
		one.Label = append(one.Label, &dto.LabelPair{Name: &l, Value: new(string)})
	}
	family := &dto.MetricFamily{Name: &d.Name, Type: dto.MetricType(value).Enum(), Metric: []*dto.Metric{one}}
	if d.Help != "" {
		family.Help = &d.Help
	}
	return family
}

func lintFamilies(t *testing.T, families []*dto.MetricFamily) {
	t.Helper()
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// compareKinds compares the kinds that the page has with those of the metrics that have a series.
func compareKinds(t *testing.T, r *prometheus.Registry, page map[string]string) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Error(err)
	}
	for title, kind := range page {
		name, _, _ := strings.Cut(title, "{")
		for _, f := range families {
			if f.GetName() == name && !strings.EqualFold(f.GetType().String(), kind) {
				t.Errorf("docs/metrics.md calls %s a %s, and it is a %s", name, kind, f.GetType())
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
