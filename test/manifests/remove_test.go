package manifests

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/harness"
)

// record returns what each node's host has.
func (l *lab) record() map[string]string {
	l.t.Helper()
	all := map[string]string{}
	for _, n := range l.nodes {
		out, err := l.ExecIn(l.t.Context(), n.Name, "sh", "-c",
			harness.HostRecording+harness.FilesRecording)
		if err != nil {
			l.t.Fatal(err)
		}
		all[n.Name] = string(out)
	}
	return all
}

// TestManifestsCanBeRemoved follows docs/remove.md. The nodes are what they were before the install, and Kubernetes has
// nothing of Egret's. Then Egret is installed again, without a boot.
func TestManifestsCanBeRemoved(t *testing.T) {
	l := start(t)
	before := l.record()
	l.installs()
	l.egress()
	l.leaves()
	l.removes()
	l.asBefore(before)
	l.noneLeft()
	l.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
	l.installs()
}

// asBefore: the nodes are what they were, and have no file of Egret's.
func (l *lab) asBefore(before map[string]string) {
	l.t.Helper()
	for node, after := range l.record() {
		if after != before[node] {
			l.t.Errorf("%s differs from before the install:\n%s", node, harness.DifferingLines(before[node], after))
		}
	}
	for _, n := range l.nodes {
		out, err := l.ExecIn(l.t.Context(), n.Name, "sh", "-c", harness.MarksRecording)
		if err != nil || len(out) > 0 {
			l.t.Errorf("%s still has %s(%v)", n.Name, out, err)
		}
	}
}

// installs follows docs/install.md, and starts pods.
func (l *lab) installs() {
	l.t.Helper()
	l.kubectl("apply", "-f", "../../deploy")
	l.certify()
	l.certifyMetrics()
	l.kubectl("apply", "-f", l.adapted())
	l.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout", patience.String())
	l.rolledOut()
	l.pods()
	l.network("installed")
}

// removes runs the commands of docs/remove.md in their order, but for an EgressIP that is left: it says so.
func (l *lab) removes() {
	l.t.Helper()
	const wait = "--timeout=3m"
	l.kubectl("delete", "egressiptraffics,clusteruserdefinednetworks", "--all", wait)
	l.kubectl("delete", "egressservices,userdefinednetworks", "--all-namespaces", "--all", wait)
	l.kubectl("-n", "egret-system", "delete", "deployment/egret-controller", "daemonset/egret-node",
		"--cascade=foreground", wait)
	l.kubectl("apply", "-f", "../../deploy/remove")
	l.returnsLinks()
	reason := l.kubectl("get", "egressip", "web", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
	if reason != v1.ReasonRemoved {
		l.t.Errorf("the EgressIP that is left is Ready for reason %q, want %s", reason, v1.ReasonRemoved)
	}
	l.t.Log(l.kubectl("-n", "egret-system", "logs", "-l", "app=egret-remove", "-c", "remove", "--prefix"))
	l.kubectl("-n", "egret-system", "delete", "daemonset/egret-ovs", "--cascade=foreground", wait)
	l.kubectl("-n", "egret-system", "rollout", "status", "daemonset/egret-remove", wait)
	l.kubectl("delete", "-f", "../../deploy/remove", wait)
	l.kubectl("delete", "-f", "../../deploy/cluster", "--ignore-not-found", wait)
	l.kubectl("delete", "-f", "../../deploy", wait)
	l.kubectl("label", "node", "--all", "k8s.ovn.org/egress-assignable-")
}

// returnsLinks waits until each node has its link back.
func (l *lab) returnsLinks() {
	l.t.Helper()
	each := fmt.Sprintf("--for=jsonpath={.status.currentNumberScheduled}=%d", len(l.nodes))
	l.kubectl("-n", "egret-system", "wait", each, "daemonset/egret-remove", "--timeout=1m")
	l.kubectl("-n", "egret-system", "wait", "--for=condition=Initialized", "pod", "-l", "app=egret-remove",
		"--timeout=3m")
}

// noneLeft: no object, no kind, and no key of a Node has a name of Egret's.
func (l *lab) noneLeft() {
	l.t.Helper()
	kinds := "crd,namespace,clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding," +
		"flowschema,prioritylevelconfiguration"
	for line := range strings.Lines(l.kubectl("get", kinds, "-o", "name") +
		l.kubectl("get", "node", "-o", "jsonpath={range .items[*]}{.metadata.annotations}{.metadata.labels}{end}")) {
		if strings.Contains(line, "egret") || strings.Contains(line, "k8s.ovn.org") {
			l.t.Errorf("Kubernetes still has %s", line)
		}
	}
}
