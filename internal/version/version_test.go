package version

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// TestRecorded: a program that the Makefile has not built says what the Go command knows.
func TestRecorded(t *testing.T) {
	module := func(version string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: version}} }
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{module("v1.2.3"), "v1.2.3"}, {module("(devel)"), "(devel)"}, {module(""), "(devel)"}, {nil, "(devel)"},
	} {
		if have := recordedVersion(c.info, c.info != nil); have != c.want {
			t.Errorf("%+v: %s, want %s", c.info, have, c.want)
		}
	}
}

// TestStamped builds a program as the Makefile does: --version prints what hack/version says.
func TestStamped(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	stamp := regexp.MustCompile(`-X \S+/internal/version\.described=`).Find(makefile)
	if stamp == nil || !bytes.Contains(makefile, []byte("go build $(FLAGS) -ldflags '$(STAMP)' -o bin/ ./cmd/...")) {
		t.Fatal("the Makefile stamps no version into the programs")
	}
	program := filepath.Join(t.TempDir(), "egret-cni")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", string(stamp)+"v1.2.3-4-gabc",
		"-o", program, "../../cmd/egret-cni")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--version"}, "egret-cni v1.2.3-4-gabc\n"}, {nil, "CNI plugin egret-cni v1.2.3-4-gabc: "},
	} {
		out, err := exec.Command(program, c.args...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), c.want) {
			t.Errorf("egret-cni %v: %q, %v; want %q", c.args, out, err, c.want)
		}
	}
}

// TestDescribed: hack/version names a tag with the commits since, v0.0.0 before the first tag, and changes that are not
// committed. Outside a clone it is silent.
func TestDescribed(t *testing.T) {
	dir := t.TempDir()
	script, err := os.ReadFile("../../hack/version")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "hack"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "hack", "version")
	if err := os.WriteFile(file, script, 0o755); err != nil {
		t.Fatal(err)
	}
	expect := func(pattern string) {
		t.Helper()
		if out, err := exec.Command(file).Output(); err != nil || !regexp.MustCompile(`^`+pattern+`$`).Match(out) {
			t.Errorf("%q, %v; want %s", out, err, pattern)
		}
	}
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	commit := func() { git("add", "."); git("commit", "-q", "--allow-empty", "-m", "a change") }
	expect("")
	git("init", "-q")
	expect("")
	commit()
	expect("v0\\.0\\.0-1-g[0-9a-f]{12}\n")
	git("tag", "v1.2.3")
	expect("v1\\.2\\.3-0-g[0-9a-f]{12}\n")
	commit()
	git("tag", "other")
	expect("v1\\.2\\.3-1-g[0-9a-f]{12}\n")
	if err := os.WriteFile(file, append(script, "# more\n"...), 0o755); err != nil {
		t.Fatal(err)
	}
	expect("v1\\.2\\.3-1-g[0-9a-f]{12}-dirty\n")
	git("tag", "-d", "v1.2.3")
	expect("v0\\.0\\.0-2-g[0-9a-f]{12}-dirty\n")
}
