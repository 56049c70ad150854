package manifests

import (
	"os"
	"slices"
	"testing"
)

// TestManifestsOnOneNode: the chart asks the cluster, and has one controller where one node is all there is. No step
// waits for a second one: not the installation, not an upgrade under traffic, and not the removal.
func TestManifestsOnOneNode(t *testing.T) {
	o := options(t)
	o.Nodes = 1
	l, chart := startWith(t, o), os.Getenv("EGRET_CHART")
	before := l.record()
	values := "settings.KUBERNETES_SERVICE_HOST=" + apiServer + ",settings.DATAPATH=" + l.Datapath()
	l.helm("install", "egret", chart, "--create-namespace", "--set", values)
	l.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout", patience.String())
	l.rolledOut()
	l.pods()
	l.egress()
	l.leaves()

	previous := slices.Concat(l.names("egret-node"), l.names("egret-controller"))
	end := l.asking(0)
	l.helm("upgrade", "egret", chart, "--set", values+",settings.LOG_FORMAT=json")
	l.rolledOut()
	end()
	l.replaced(previous)
	l.leaves()
	l.noneRestarted()
	if n := len(l.names("egret-controller")); n != 1 {
		t.Errorf("there are %d controllers, want one", n)
	}

	l.kubectl("delete", "pods", "--all", "--now")
	l.kubectl("delete", "egressips", "--all")
	l.helm("upgrade", "egret", chart, "--reset-then-reuse-values", "--set", "remove=true")
	l.returnsLinks()
	l.helm("uninstall", "egret")
	l.kubectl("-n", "egret-system", "wait", "--for=delete", "pod", "-l", "app=egret-remove", "--timeout=2m")
	l.asBefore(before)
}
