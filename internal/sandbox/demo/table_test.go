package demo

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func exampleRows() []row {
	egress := ips("172.18.0.33", "172.18.0.44")
	return []row{
		{pod: "prod/web-1", node: "egret-n1", destination: "egret-ext1 172.18.0.100", want: egress,
			answers: saw("172.18.0.33", "172.18.0.44", "172.18.0.44")},
		{pod: "prod/web-1", node: "egret-n1", destination: "own node 172.18.0.2", want: ips("10.244.0.3"),
			answers: saw("10.244.0.3")},
		{pod: "prod/web-2", node: "egret-n2", destination: "egret-ext1 172.18.0.100", want: egress,
			answers: saw("172.18.0.3")},
		{pod: "prod/db-1", node: "egret-n1", destination: "egret-ext1 172.18.0.100", want: ips("172.18.0.2"),
			awaiting: true},
	}
}

func TestRowsTable(t *testing.T) {
	for name, s := range map[string]screen{"plain": {}, "rich": {rich: true}} {
		t.Run(name, func(t *testing.T) { golden(t, name+".golden", s.rowsTable(exampleRows())) })
	}
}

func golden(t *testing.T, name, have string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run go test with -update and look at the file", err)
	}
	if diff := cmp.Diff(string(want), have); diff != "" {
		t.Errorf("%s (-want +have):\n%s", name, diff)
	}
}

func TestLiveRedrawsInPlace(t *testing.T) {
	var out bytes.Buffer
	l := live{screen: screen{out: &out, rich: true, width: 80, height: 10}}
	l.drawText("a\nb\n", false)
	l.drawText("c\nd\n", true)
	if want := "a\nb\n\x1b[2A\x1b[Jc\nd\n"; out.String() != want {
		t.Errorf("have %q, want %q", out.String(), want)
	}
}

func TestLiveShowsOnlyTheLast(t *testing.T) {
	for name, s := range map[string]screen{"off a terminal": {}, "terminal too low": {rich: true, width: 80, height: 3},
		"terminal too narrow": {rich: true, height: 9}} {
		var out bytes.Buffer
		s.out = &out
		l := live{screen: s}
		l.drawText("a\nb\nc\n", false)
		l.drawText("d\ne\nf\n", true)
		if out.String() != "d\ne\nf\n" {
			t.Errorf("%s: have %q", name, out.String())
		}
	}
}

func TestPlainTableHasNoTrailingSpace(t *testing.T) {
	for line := range strings.Lines(plainTable([]string{"A", ""}, [][]string{{"long text", ""}})) {
		if line != strings.TrimRight(line, " \n")+"\n" {
			t.Errorf("%q ends in spaces", line)
		}
	}
}
