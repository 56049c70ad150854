package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/sandbox/image"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestQuickstart runs the commands of docs/quickstart.md, with this cluster's addresses, nodes and images for the
// page's. The pod is seen outside with the egress IP. Afterwards the cluster has nothing of Egret's, the nodes are what
// they were before the install, and another pod network works on them.
func TestQuickstart(t *testing.T) {
	options(t) // skips before anything is built
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t)
	before := l.record()
	kubectl, asHere := l.tools(), l.values()
	for _, block := range shellBlock.FindAllStringSubmatch(string(page), -1) {
		commands := asHere.Replace(block[1])
		if strings.HasPrefix(commands, "make ") { // the Makefile has done that
			continue
		}
		if strings.HasPrefix(commands, "ctr ") {
			l.load(".")
			continue
		}
		if strings.Contains(commands, "remove=true") {
			l.pod(forgotten, l.nodes[0], "")
			l.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout", patience.String())
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "PATH="+kubectl+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		t.Logf("$ %s%s", commands, out)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(commands, "curl -sS") && !isEgressIP(string(out)) {
			t.Errorf("the pod is seen as %s, want %s", out, egressIP)
		}
	}
	left := l.kubectl("get", "crd,clusterrole,validatingadmissionpolicy", "-o", "name")
	if strings.Contains(left, "egret") || strings.Contains(left, ".k8s.ovn.org") {
		t.Errorf("the cluster still has:\n%s", left)
	}
	l.asBefore(before)
	l.nextPlugin()
}

// values are this cluster's for those of the page.
func (l *lab) values() *strings.Replacer {
	return strings.NewReplacer(
		"KUBERNETES_SERVICE_HOST=192.0.2.10", "KUBERNETES_SERVICE_HOST="+apiServer+",settings.DATAPATH="+l.Datapath(),
		"bin/egret-*.tgz", os.Getenv("EGRET_CHART"),
		"192.0.2.77", egressIP.String(),
		"worker-1 worker-2", l.nodes[0].Name+" "+l.nodes[1].Name,
		"http://192.0.2.200:8000/", l.outside(),
		"192.0.2.200", l.ExternalHosts()[0].IPs[0].String(),
		"--image curlimages/curl", "--image-pull-policy Never --image "+image.Agnhost().Name)
}

// tools is a folder with the kubectl of this cluster, which finds its plugin.
func (l *lab) tools() string {
	l.t.Helper()
	dir := l.t.TempDir()
	plugin, err := filepath.Abs(filepath.Join(bin, "kubectl-egret"))
	if err != nil {
		l.t.Fatal(err)
	}
	script := "#!/bin/sh\nif [ \"$1\" = egret ]; then shift; exec '" + plugin + "' \"$@\"; fi\nexec '" +
		strings.Join(l.Kubectl(l.t.Context()).Args, "' '") + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil {
		l.t.Fatal(err)
	}
	return dir
}
