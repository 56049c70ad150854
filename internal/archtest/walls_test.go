package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// pure packages compute, and do nothing else.
var pure = []string{
	"internal/ref", "internal/destinations", "internal/world", "internal/decide/patience",
	"internal/decide/handover", "internal/decide",
	"internal/plan", "internal/compile", "internal/trace", "internal/feature", "internal/egress", "internal/holder",
	"internal/tunnel", "internal/clearance", "internal/explain", "internal/networks",
}

// notPure are packages below them that are for tests, or are the one list of features.
var notPure = []string{"internal/feature/featuretest", "internal/compile/compiletest"}

// isKindFile says whether a file is where a feature says of its kind how the API's objects come into the world.
func isKindFile(path string) bool {
	return filepath.Base(path) == "kind.go" && under(filepath.Dir(path), "internal/feature")
}

// doesIO says of an import whether it reaches out of the process.
func doesIO(name string) bool {
	switch name {
	case "net/netip":
		return false
	case "syscall", "io/fs", "io/ioutil", "embed", "plugin":
		return true
	}
	return standard(name) && under(name, "os", "net", "database", "log")
}

// TestPurePackages: world, plan, compile, trace, features and the machines of holder, tunnel and clearance import one
// another in one direction, the standard library without I/O, and labels, which selectors are made of.
func TestPurePackages(t *testing.T) {
	allowed := map[string][]string{
		"internal/ref":          {},
		"internal/destinations": {},
		"internal/world":        {"internal/ref", "internal/destinations"},
		"internal/plan":         {"internal/ref", "internal/destinations"},
		"internal/compile":      {"internal/world", "internal/plan", "internal/ref"},
		"internal/trace":        {"internal/plan", "internal/ref"},
		"internal/feature": {
			"internal/world", "internal/plan", "internal/decide", "internal/decide/handover",
			"internal/decide/patience", "internal/ref", "internal/egress", "internal/holder", "internal/destinations",
			"internal/networks",
		},
		"internal/networks":        {"internal/world", "internal/ref"},
		"internal/egress":          {"internal/world", "internal/plan", "internal/ref", "internal/holder"},
		"internal/holder":          {"internal/world", "internal/plan", "internal/ref"},
		"internal/decide":          {"internal/world"},
		"internal/decide/handover": {"internal/world", "internal/ref", "internal/decide"},
		"internal/decide/patience": {"internal/world", "internal/ref", "internal/decide", "internal/decide/handover"},
		"internal/tunnel":          {"internal/world"},
		"internal/clearance":       {"internal/world", "internal/ref", "internal/destinations"},
		"internal/explain": {
			"internal/world", "internal/plan", "internal/compile", "internal/trace", "internal/ref", "internal/decide",
			"internal/destinations", "internal/feature", "internal/feature/all",
		},
	}
	for _, f := range files(t) {
		i := slices.IndexFunc(pure, func(p string) bool { return under(f.folder, p) })
		if i < 0 || under(f.folder, notPure...) || f.folder == "internal/feature/all" {
			continue
		}
		for _, name := range f.imports {
			switch {
			case isKindFile(f.path) && under(name, "internal/feature", "internal/kube", "internal/compile",
				"internal/trace"):
			case doesIO(name):
				t.Errorf("%s imports %s: what is computed there reads and writes nothing; do that in a plane", f.path,
					name)
			case own(name) && !slices.Contains(allowed[pure[i]], name):
				t.Errorf("%s imports %s: %s may import %v of this module only", f.path, name, pure[i], allowed[pure[i]])
			case !own(name) && !standard(name) && name != "k8s.io/apimachinery/pkg/labels":
				t.Errorf("%s imports %s: no other library but labels there", f.path, name)
			}
		}
	}
}

// TestOneListOfFeatures: nobody but internal/feature/all puts features together, and programs ask a feature for its
// decisions only.
func TestOneListOfFeatures(t *testing.T) {
	for _, f := range files(t) {
		if !under(f.folder, "internal/feature/all", "internal/feature/featuretest", "internal/node",
			"internal/controller", "test") {
			for _, name := range f.imports {
				if under(name, "internal/feature") && name != "internal/feature" && !under(name,
					"internal/feature/all") {
					t.Errorf("%s imports %s: ask internal/feature/all for features", f.path, name)
				}
			}
		}
	}
}

// targetLibraries speak to what a node's planes hold.
var targetLibraries = []string{
	"github.com/vishvananda/netlink", "github.com/vishvananda/netns", "github.com/ovn-kubernetes/libovsdb",
	"sigs.k8s.io/knftables",
	"github.com/google/nftables", "github.com/mdlayher/packet", "github.com/mdlayher/ndp",
	"github.com/mdlayher/netlink", "github.com/mdlayher/socket",
}

// speaksToTargets are the packages that may use them.
var speaksToTargets = []string{
	"internal/plane",
	// a pod's own end of its link, in the pod's namespace: it goes with the pod and is in no plan
	"internal/node/cniserver/podlink",
	"internal/sandbox", // makes the machines themselves: their namespaces, links and fabric
	"test",             // looks at the sandbox from outside: captures on its fabric
}

// TestOnlyPlanesDoIO: only planes speak to targets, and only planes, the sandbox and what measures it run commands.
func TestOnlyPlanesDoIO(t *testing.T) {
	for _, f := range files(t) {
		for _, name := range f.imports {
			if under(name, targetLibraries...) && !under(f.folder, speaksToTargets...) {
				t.Errorf("%s imports %s: only planes speak to targets; write a row, and let a plane carry it out",
					f.path, name)
			}
			if name == "os/exec" && !under(f.folder, "internal/plane", "internal/sandbox", "cmd/egret-sandbox", "hack",
				"test") {
				t.Errorf("%s imports os/exec: only planes, the sandbox and what measures it run commands", f.path)
			}
		}
	}
}

// TestPlanesAreOpenedInOnePlace: planes do not know of the cluster, and only the agent's wiring knows of them.
func TestPlanesAreOpenedInOnePlace(t *testing.T) {
	for _, f := range files(t) {
		for _, name := range f.imports {
			if under(f.folder, "internal/plane") && own(name) && !under(name, "internal/plane", "internal/plan") {
				t.Errorf("%s imports %s: a plane knows the plan and its target, and nothing of the cluster", f.path,
					name)
			}
			if under(name, "internal/plane") &&
				!under(f.folder, "internal/plane", "internal/host", "internal/node", "internal/sandbox", "test") {
				t.Errorf("%s imports %s: only the agent opens planes", f.path, name)
			}
		}
	}
}

// TestPluginRunsElsewhere: what kubectl-egret is built from needs nothing of Linux, for it also runs on macOS and
// Windows.
func TestPluginRunsElsewhere(t *testing.T) {
	all := files(t)
	todo := []string{"cmd/kubectl-egret"}
	for i := 0; i < len(todo); i++ {
		for _, f := range all {
			if f.folder != todo[i] {
				continue
			}
			for _, name := range f.imports {
				switch {
				case own(name) && !slices.Contains(todo, name):
					todo = append(todo, name)
				case under(name, "golang.org/x/sys/unix", "github.com/vishvananda", "github.com/mdlayher",
					"github.com/google/nftables"):
					t.Errorf("%s imports %s, and cmd/kubectl-egret imports %s", f.path, name, f.folder)
				}
			}
		}
	}
	if len(todo) < 10 {
		t.Errorf("cmd/kubectl-egret imports %v: the test sees too little", todo)
	}
}

// TestTypesNeedMetadataOnly: other programs import api, a module of its own, and get nothing of Egret with it. The
// types need apimachinery alone; apply configurations are made of those of client-go.
func TestTypesNeedMetadataOnly(t *testing.T) {
	for _, f := range files(t) {
		if !under(f.folder, "api") {
			continue
		}
		allowed := []string{"api", "k8s.io/apimachinery"}
		if under(f.folder, "api/applyconfiguration") {
			allowed = append(allowed, "k8s.io/client-go/applyconfigurations", "sigs.k8s.io/structured-merge-diff/v6")
		}
		for _, name := range f.imports {
			if !standard(name) && !under(name, allowed...) {
				t.Errorf("%s imports %s: programs that import api would need that; api may import %v only", f.path,
					name, allowed)
			}
		}
	}
}

// maxMain is the length of a main.go that is wiring and nothing else.
const maxMain = 150

func TestCommandsAreWiring(t *testing.T) {
	mains, err := filepath.Glob(root + "/cmd/*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("no commands found: %v", err)
	}
	for _, path := range mains {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n >= maxMain {
			t.Errorf("%s has %d lines, want less than %d: put the work into a package", path, n, maxMain)
		}
	}
}
