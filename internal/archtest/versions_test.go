package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/egret-net/egret/test/docstest"
)

// versions are what the project pins: a file, and the expression by which it names the version.
var versions = []struct{ what, file, expression string }{
	{"Kubernetes, at least", "deploy/helm/egret/Chart.yaml", `(?m)^kubeVersion: ">=([\d.]+)-0"$`},
	{"Kubernetes in tests", "sandbox/controlplane/go.mod", `(?m)^\tk8s\.io/kubernetes v(\S+)$`},
	{"Kubernetes' client libraries", "go.mod", `(?m)^\tk8s\.io/client-go v(\S+)$`},
	{"Helm in tests", "deploy/helm/tools/go.mod", `(?m)^\thelm\.sh/helm/v4 v(\S+)$`},
	{"OVN in the image and in tests", "internal/sandbox/rootfs/doc.go", `OVN (\d+\.\d+)`},
	{"Open vSwitch in the image and in tests", "internal/sandbox/rootfs/doc.go", `OVS (\d+\.\d+)`},
	{"nftables in the image and in tests", "internal/sandbox/rootfs/doc.go", `nftables (\d+\.\d+)`},
	{"Linux, at least", "internal/plane/route/doc.go", `metric AddrMetric as well \(Linux (\d+\.\d+)\)`},
	{"MetalLB in tests", "sandbox/images/metallb/go.mod", `(?m)^\tgo\.universe\.tf/metallb v(\S+)`},
	{"Go, to build it", "go.mod", `(?m)^go (\S+)$`},
}

// TestVersionsAreDocumented compares the table of docs/reference.md with what the project pins.
func TestVersionsAreDocumented(t *testing.T) {
	table := docstest.Row("what", "version", "pinned in") + "|---|---|---|\n"
	for _, v := range versions {
		text, err := os.ReadFile(filepath.Join(root, v.file))
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(v.expression).FindSubmatch(text)
		if match == nil {
			t.Fatalf("%s has nothing that looks like %s", v.file, v.expression)
		}
		table += docstest.Row(v.what, string(match[1]), "`"+v.file+"`")
	}
	docstest.ComparePart(t, "Versions", table)
}
