package manifests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox/image"
	"github.com/egret-net/egret/internal/sandbox/rootfs"
)

const bin = "../../bin"

const formerVersion = "former"

// TestManifestsByHelm: Helm installs the chart of the commit before this one, with the image of that commit. Pods get a
// network, and leave with an egress IP. Then Helm upgrades to the packaged chart and the image of this commit: all pods
// of Egret's but Open vSwitch's are replaced, and no connection fails or has another source. It goes back to the former
// image. When somebody uninstalls it without the value remove, nodes and pods go on.
func TestManifestsByHelm(t *testing.T) {
	options(t) // skips before anything is built
	chart, folder := former(t)
	l := start(t)
	l.load(folder)
	values := "settings.KUBERNETES_SERVICE_HOST=" + apiServer + ",settings.DATAPATH=" + l.Datapath() +
		",settings.LOG_FORMAT=json"
	l.helm("install", "egret", chart, "--create-namespace", "--set", values+",image.tag="+formerVersion)
	l.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout", patience.String())
	l.rolledOut()
	l.pods()
	l.network("after the installation")
	l.egress()
	l.leaves()

	l.load(".")
	previous, images := slices.Concat(l.names("egret-node"), l.names("egret-controller")), l.images()
	end := l.asking(0, 1)
	l.helm("upgrade", "egret", os.Getenv("EGRET_CHART"), "--set", values)
	l.rolledOut()
	end()
	l.replaced(previous)
	l.network("after the upgrade")
	l.leaves()
	l.logged()
	l.noneRestarted()
	if t.Failed() {
		return // look shows logs of pods
	}
	upgraded := l.images()
	l.helm("rollback", "egret")
	l.rolledOut()
	if have := l.images(); have != images || have == upgraded {
		t.Errorf("after the rollback pods have the images %s\nbefore the upgrade %s\nafter it %s", have, images, upgraded)
	}
	l.leaves()
	l.helm("uninstall", "egret")
	l.kubectl("-n", "egret-system", "wait", "--for=delete", "pod", "-l", "app in (egret-node,egret-controller)",
		"--timeout", patience.String())
	left := l.kubectl("-n", "egret-system", "get", "daemonsets,deployments", "-o", "name")
	if strings.TrimSpace(left) != "daemonset.apps/egret-ovs" {
		t.Errorf("Helm has left %s", left)
	}
	l.leaves()
	l.helm("install", "egret", os.Getenv("EGRET_CHART"), "--set", values)
	l.rolledOut()
	l.network("after the second installation")
	l.leaves()
}

// names are those of an app's pods.
func (l *lab) names(app string) []string {
	l.t.Helper()
	return strings.Fields(l.kubectl("-n", "egret-system", "get", "pods", "-l", "app="+app, "-o",
		"jsonpath={.items[*].metadata.name}"))
}

// replaced: no pod of Egret's is one of these.
func (l *lab) replaced(former []string) {
	l.t.Helper()
	for _, name := range slices.Concat(l.names("egret-node"), l.names("egret-controller")) {
		if slices.Contains(former, name) {
			l.t.Errorf("%s has not been replaced", name)
		}
	}
}

// images are those that agents and controllers run, by their content.
func (l *lab) images() string {
	l.t.Helper()
	ids := strings.Fields(l.kubectl("-n", "egret-system", "get", "pods", "-l",
		"app in (egret-node,egret-controller)", "-o", "jsonpath={.items[*].status.containerStatuses[*].imageID}"))
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " ")
}

// helm does something with the release of that name.
func (l *lab) helm(args ...string) {
	l.t.Helper()
	args = append(args, "--namespace", "egret-system")
	cmd := exec.CommandContext(l.t.Context(), filepath.Join(bin, "helm"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, out)
	}
	l.t.Logf("helm %s\n%s", strings.Join(args, " "), out)
}

// former makes the chart and the image of the commit before this one, and returns the chart's folder and that of the
// image, below bin.
func former(t *testing.T) (chart, folder string) {
	t.Helper()
	source := t.TempDir()
	files := run(t, nil, "git", "-C", "../..", "archive", "HEAD~1")
	run(t, files, "tar", "-x", "-C", source)
	out, err := os.MkdirTemp(bin, "former-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(out) })
	out, err = filepath.Abs(out)
	if err != nil {
		t.Fatal(err)
	}
	run(t, nil, "env", "CGO_ENABLED=0", "go", "build", "-C", source, "-trimpath", "-buildvcs=false", "-o", out,
		"./cmd/egret-node", "./cmd/egret-controller", "./cmd/egret-cni")
	of := image.Product{RootDir: rootfs.Dir(), BinDir: out, Licence: "../../LICENSE",
		Release: image.Release{Version: formerVersion, Revision: "HEAD~1", Time: time.Unix(0, 0)}}
	if err := image.BuildEgret(t.Context(), of, out, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(source, "deploy/helm/egret"), filepath.Base(out)
}

// run returns what a command prints that reads input.
func run(t *testing.T, input []byte, command ...string) []byte {
	t.Helper()
	cmd, complaints := exec.CommandContext(t.Context(), command[0], command[1:]...), &bytes.Buffer{}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, complaints)
	}
	return out
}
