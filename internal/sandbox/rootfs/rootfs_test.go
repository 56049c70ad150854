package rootfs

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEnsureAcceptsACurrentFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	writeStamp(t, dir, recipeStamp())
	noProgress := func(line string) { t.Errorf("built although current: %s", line) }
	if err := Ensure(context.Background(), dir, noProgress); err != nil {
		t.Fatal(err)
	}
}

func TestFolderOfAnotherPackageListIsOutdated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	writeStamp(t, dir, strings.Repeat("0", 64))
	if isCurrent(dir) {
		t.Error("a folder with another stamp counts as current")
	}
	if isCurrent(filepath.Join(dir, "absent")) {
		t.Error("an absent folder counts as current")
	}
}

func TestFinishForgetsTheBuildingMachine(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"etc/resolv.conf", "etc/hostname", "var/cache/apt/archives/x.deb"} {
		write(t, filepath.Join(dir, f), "of the building machine")
	}
	if err := finishRoot(dir); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "etc/resolv.conf")); len(b) != 0 {
		t.Errorf("resolv.conf still says %q", b)
	}
	if _, err := os.Stat(filepath.Join(dir, "var/cache/apt/archives/x.deb")); !os.IsNotExist(err) {
		t.Errorf("downloaded package left: %v", err)
	}
	if !isCurrent(dir) {
		t.Error("the finished folder is not stamped")
	}
}

func TestSwapReplacesTheOldFolder(t *testing.T) {
	base := t.TempDir()
	write(t, filepath.Join(base, "root/old"), "")
	write(t, filepath.Join(base, "root.partial/new"), "")
	if err := swapRoot(filepath.Join(base, "root.partial"), filepath.Join(base, "root")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(base, "*/*"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(base, "root/new")}; !slices.Equal(left, want) {
		t.Errorf("have %v, want %v", left, want)
	}
}

// TestRootHasTheVersionsOfThePage: doc.go names the versions that docs/reference.md shows, and Debian's are these.
func TestRootHasTheVersionsOfThePage(t *testing.T) {
	status, err := os.ReadFile(filepath.Join(Dir(), "var/lib/dpkg/status"))
	if err != nil {
		t.Skipf("needs the root folder (make build): %v", err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"OVN": "ovn-common", "OVS": "openvswitch-common",
		"nftables": "nftables"} {
		named := regexp.MustCompile(name + ` (\d+\.\d+)`).FindSubmatch(doc)
		have := regexp.MustCompile(`(?m)^Package: ` + program + `\n(?:.+\n)*?Version: (\d+\.\d+)`).FindSubmatch(status)
		if named == nil || have == nil || string(named[1]) != string(have[1]) {
			t.Errorf("doc.go names %q, and the root folder has %q", named, have)
		}
	}
}

func TestPickSource(t *testing.T) {
	tests := map[string]struct {
		indexes string
		want    source
		ok      bool
	}{
		"labelled archive, not security": {
			"Debian|Debian-Security|http://m.example/debian-security/\nDebian|Debian|http://m.example/debian/\n",
			source{mirror: "http://m.example/debian/"}, true,
		},
		"third-party archive first": {
			"Google|Google|https://g.example/apt/\nDebian|Debian|https://m.example/d/\n",
			source{mirror: "https://m.example/d/"}, true,
		},
		"before the first update": {
			"||http://m.example/debian-security/\n||http://m.example/debian/\n",
			source{mirror: "http://m.example/debian/"}, true,
		},
		"scheme debootstrap cannot read": {"Debian|Debian|mirror+file:/etc/mirrors|\n", source{}, false},
		"nothing":                        {"", source{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			have, ok := pickSource(tt.indexes)
			if ok != tt.ok || have != tt.want {
				t.Errorf("have %+v %v, want %+v %v", have, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestFollowReportsSparselyAndKeepsTheEnd(t *testing.T) {
	clock := time.Unix(0, 0)
	now := func() time.Time { clock = clock.Add(time.Second); return clock }
	var out strings.Builder
	for range 50 {
		out.WriteString("I: Retrieving x\n")
	}
	out.WriteString("E: no such package\n")
	var reported int
	tail := followOutput(strings.NewReader(out.String()), func(string) { reported++ }, now)
	if reported == 0 || reported > 12 {
		t.Errorf("%d progress lines of 50", reported)
	}
	if len(tail) != 15 || tail[14] != "E: no such package" {
		t.Errorf("tail %q", tail)
	}
}

func writeStamp(t *testing.T, dir, content string) {
	t.Helper()
	write(t, filepath.Join(dir, stampFile), content+"\n")
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
