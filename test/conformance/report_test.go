package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sampleReport = `[{"SpecReports":[
 {"ContainerHierarchyTexts":["[sig-network] Services"],"LeafNodeType":"It","LeafNodeText":"should serve [Conformance]","State":"passed","RunTime":2000000000},
 {"ContainerHierarchyTexts":["[sig-network] Services"],"LeafNodeType":"It","LeafNodeText":"should balance","State":"failed","RunTime":1000000000,"Failure":{"Message":"no answer\nat all"}},
 {"ContainerHierarchyTexts":["[sig-network] Topology Hints"],"LeafNodeType":"It","LeafNodeText":"should spread","State":"skipped","Failure":{"Message":"Only supported in multi-zone clusters"}},
 {"ContainerHierarchyTexts":["[sig-network] Services"],"LeafNodeType":"It","LeafNodeText":"should work after restarting kube-proxy","State":"skipped"},
 {"ContainerHierarchyTexts":["[sig-network] Services"],"LeafNodeType":"It","LeafNodeText":"should not have been asked for","State":"skipped"},
 {"ContainerHierarchyTexts":["[sig-storage] Volumes"],"LeafNodeType":"It","LeafNodeText":"should mount","State":"passed"},
 {"LeafNodeType":"ReportAfterSuite","State":"passed"}]}]`

const sampleLines = `PASS   [sig-network] Services should serve [Conformance] (2s)
FAIL   [sig-network] Services should balance (1s)
       no answer
CANNOT [sig-network] Services should work after restarting kube-proxy
       is about kube-proxy, which Egret stands in for
SKIP   [sig-network] Topology Hints should spread
       Only supported in multi-zone clusters
1 passed, 1 failed, 1 skipped themselves, 1 cannot run here
`

func specsOf(t *testing.T, content string) []spec {
	t.Helper()
	file := filepath.Join(t.TempDir(), reportFile)
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	specs, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	return specs
}

// Every spec of sig-network is told of once, except those that nobody asked for.
func TestReport(t *testing.T) {
	var out strings.Builder
	if report(&out, specsOf(t, sampleReport)) {
		t.Error("a run with a failure has passed")
	}
	for _, line := range strings.Split(sampleLines, "\n") {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in:\n%s", line, out.String())
		}
	}
	if strings.Contains(out.String(), "asked for") || strings.Contains(out.String(), "sig-storage") {
		t.Errorf("too much in:\n%s", out.String())
	}
}

// A suite that could not begin has run no spec, and its own failure shows.
func TestReportOfASuiteThatBroke(t *testing.T) {
	var out strings.Builder
	broken := `[{"SpecReports":[{"LeafNodeType":"SynchronizedBeforeSuite","State":"failed","Failure":{"Message":"no nodes"}}]}]`
	if report(&out, specsOf(t, broken)) || !strings.Contains(out.String(), "no nodes") {
		t.Errorf("have:\n%s", out.String())
	}
	if report(&out, nil) {
		t.Error("a run without specs has passed")
	}
}
