// Package monitoring_test holds the alerts and the dashboards to the metrics, to the runbooks, and to promtool.
package monitoring_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	runbooks = "../../docs/runbooks"
	urls     = "https://github.com/egret-net/egret/blob/main/docs/runbooks/"
)

type rule struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

// readSpec returns the spec of the PrometheusRule, as Prometheus reads it, and its rules.
func readSpec(t *testing.T) (spec []byte, rules []rule) {
	t.Helper()
	var object struct {
		Spec struct {
			Groups []struct{ Rules []rule } `json:"groups"`
		} `json:"spec"`
	}
	var raw struct {
		Spec json.RawMessage `json:"spec"`
	}
	text := readFile(t, "rules.yaml")
	for _, into := range []any{&object, &raw} {
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range object.Spec.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("rules.yaml has no rules")
	}
	return raw.Spec, rules
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMetricsExist: rules and dashboards ask for metrics of docs/metrics.md alone. Tests of both programs hold that
// page to their registries.
func TestMetricsExist(t *testing.T) {
	name, kinds := regexp.MustCompile("`([a-z_]+)"), map[string]string{}
	for line := range strings.Lines(string(readFile(t, "../../docs/metrics.md"))) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
				kinds[m[1]] = cells[2]
			}
		}
	}
	dashboards, err := filepath.Glob("*.json")
	if err != nil || len(dashboards) == 0 {
		t.Fatalf("dashboards: %v %v", dashboards, err)
	}
	for _, path := range append(dashboards, "rules.yaml") {
		names := regexp.MustCompile(`\b(egret|ovnkube)_[a-z_]+`).FindAllString(string(readFile(t, path)), -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric", path)
		}
		for _, name := range names {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if kinds[name] == "" && !strings.Contains(kinds[base], "histogram") {
				t.Errorf("%s asks for %s, which is no metric of docs/metrics.md", path, name)
			}
		}
	}
}

// TestDashboardsAreJSON: each panel has queries, and the dashboards differ in uid.
func TestDashboardsAreJSON(t *testing.T) {
	seen := map[string]bool{}
	paths, _ := filepath.Glob("*.json")
	for _, path := range paths {
		var d struct {
			UID    string
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(readFile(t, path), &d); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if seen[d.UID] || len(d.Panels) == 0 {
			t.Errorf("%s: uid %q, %d panels", path, d.UID, len(d.Panels))
		}
		seen[d.UID] = true
		for _, p := range d.Panels {
			if len(p.Targets) == 0 || p.Targets[0].Expr == "" {
				t.Errorf("%s: panel %q asks for nothing", path, p.Title)
			}
		}
	}
}

// sections are those of a runbook, in order.
var sections = []string{"Meaning", "Impact", "Diagnosis", "What to do"}

// TestEachAlertHasARunbook: an alert has a severity, texts, and a page with all sections and real output; each page is
// of an alert, and docs/metrics.md lists it.
func TestEachAlertHasARunbook(t *testing.T) {
	_, rules := readSpec(t)
	index := string(readFile(t, "../../docs/metrics.md"))
	var wanted []string
	for _, r := range rules {
		wanted = append(wanted, r.Alert+".md")
		if r.Annotations["runbook_url"] != urls+r.Alert+".md" || r.Annotations["summary"] == "" ||
			r.Annotations["description"] == "" {
			t.Errorf("alert %s: summary, description or runbook_url: %v", r.Alert, r.Annotations)
		}
		if !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
			t.Errorf("alert %s has severity %q", r.Alert, r.Labels["severity"])
		}
		if !strings.Contains(index, "[`"+r.Alert+"`](runbooks/"+r.Alert+".md)") {
			t.Errorf("docs/metrics.md does not link to the runbook of %s", r.Alert)
		}
		checkRunbook(t, r.Alert)
	}
	slices.Sort(wanted)
	var have []string
	pages, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		have = append(have, p.Name())
	}
	if !slices.Equal(have, wanted) {
		t.Errorf("docs/runbooks has %v, want %v", have, wanted)
	}
}

func checkRunbook(t *testing.T, alert string) {
	t.Helper()
	text := string(readFile(t, filepath.Join(runbooks, alert+".md")))
	if !strings.HasPrefix(text, "# "+alert+"\n") {
		t.Errorf("the runbook of %s has another title", alert)
	}
	at := 0
	for _, s := range sections {
		i := strings.Index(text[at:], "\n## "+s+"\n")
		if i < 0 {
			t.Errorf("the runbook of %s lacks section %q, or has it too early", alert, s)
			return
		}
		at += i + 1
	}
	_, diagnosis, _ := strings.Cut(text, "\n## Diagnosis\n")
	diagnosis, _, _ = strings.Cut(diagnosis, "\n## ")
	if !strings.Contains(diagnosis, "```\n$ ") {
		t.Errorf("the runbook of %s shows no command with its output", alert)
	}
}

// TestPromtool: promtool takes the rules, and each alert fires when it should and not before (rules_test.yaml).
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not on this machine: run hack/deps prometheus")
	}
	spec, rules := readSpec(t)
	dir, cases := t.TempDir(), readFile(t, "rules_test.yaml")
	for name, text := range map[string][]byte{"rules.yaml": spec, "rules_test.yaml": cases} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	for _, r := range rules {
		fires := regexp.MustCompile(`alertname: ` + r.Alert + `\n\s+exp_alerts:\n\s+- exp_labels`)
		if !fires.Match(cases) {
			t.Errorf("no case of rules_test.yaml has %s fire", r.Alert)
		}
	}
}

// TestNamespacesAreHonoured: the chart's PodMonitor keeps the namespace of an EgressService,
// and does not write the target's over it.
func TestNamespacesAreHonoured(t *testing.T) {
	template := string(readFile(t, "../helm/egret/templates/monitoring.yaml"))
	if strings.Count(template, "\n  - port: metrics\n    honorLabels: true") != 1 {
		t.Error("the PodMonitor's endpoint lacks honorLabels")
	}
}
