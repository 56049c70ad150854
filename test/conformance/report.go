package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// spec is one of the suite's, and what became of it.
type spec struct {
	name    string
	state   string // passed, skipped, or how it failed: failed, timedout, panicked, ...
	message string // why it failed or skipped itself; "" if it was not chosen
	took    time.Duration
}

// ginkgoReport is what is read of Ginkgo's JSON report, a list of these.
type ginkgoReport struct {
	SpecReports []struct {
		ContainerHierarchyTexts    []string
		LeafNodeType, LeafNodeText string
		State                      string
		RunTime                    time.Duration
		Failure                    struct{ Message string }
	}
}

// readReport reads the specs of sig-network, and whatever of the suite itself failed, ordered by name.
func readReport(file string) ([]spec, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the suite left no report: see e2e.log beside it: %w", err)
	}
	var suites []ginkgoReport
	if err := json.Unmarshal(content, &suites); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var specs []spec
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			s := spec{strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " "), r.State,
				firstLine(r.Failure.Message), r.RunTime}
			if r.LeafNodeType == "It" && strings.HasPrefix(s.name, "[sig-network]") || r.LeafNodeType != "It" &&
				s.failed() {
				specs = append(specs, s)
			}
		}
	}
	slices.SortFunc(specs, func(a, b spec) int { return strings.Compare(a.name, b.name) })
	return specs, nil
}

// failed says whether the spec ran and did not pass.
func (s spec) failed() bool {
	return s.state != "passed" && s.state != "skipped" && s.state != "pending"
}

// report prints what became of the specs; passed is false if one failed, or none passed.
func report(w io.Writer, specs []spec) (passed bool) {
	counts := map[string]int{}
	for _, s := range specs {
		verdict, why := s.verdict()
		if verdict == "" {
			continue
		}
		counts[verdict]++
		fmt.Fprintf(w, "%-6s %s", verdict, strings.TrimSpace(s.name))
		if s.took > 0 && verdict != "SKIP" {
			fmt.Fprintf(w, " (%.0fs)", s.took.Seconds())
		}
		if why != "" {
			fmt.Fprintf(w, "\n       %s", why)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped themselves, %d cannot run here\n", counts["PASS"], counts["FAIL"],
		counts["SKIP"], counts["CANNOT"])
	return counts["FAIL"] == 0 && counts["PASS"] > 0
}

// verdict is PASS, FAIL, SKIP or CANNOT and the reason; "" for a spec that nobody asked for.
func (s spec) verdict() (verdict, why string) {
	switch {
	case s.state == "passed":
		return "PASS", ""
	case s.failed():
		return "FAIL", s.message
	case s.message != "":
		return "SKIP", s.message
	}
	if why = whyNot(s.name); why != "" {
		return "CANNOT", why
	}
	return "", ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
