package node

import (
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// shownAnnotations is what the API shows of a node's annotations, as kube.Published, at a version.
type shownAnnotations struct {
	version   string
	published [32]byte
}

// publishAnnotations has annotations written, also where the Node says something else: somebody who garbles one would
// take the node out otherwise.
func (a *Agent) publishAnnotations(n *world.Node, annotations map[string]string) {
	a.nodeSays.Store(&shownAnnotations{n.Version, n.Published})
	a.annotations.putValue(annotations)
}

// annotationsOverwritten reports whether the Node, in a version that is not older, says something else than was sent.
func (a *Agent) annotationsOverwritten(sent map[string]string, version string) bool {
	n := a.nodeSays.Load()
	return n != nil && !kube.Older(n.version, version) && n.published != kube.Published(sent)
}

// reportOverwritten reports whether somebody else has written or deleted this node's EgressNode since a version. The
// agent alone has words to say there, so that any other version counts.
func (a *Agent) reportOverwritten(_ Report, version string) bool {
	return a.source.Overwritten(kube.EgressNodes(), a.self, version)
}

// forgetLost has everything written again after a restore of etcd: the API server may have lost it, and versions that
// it gave before say nothing any more.
func (a *Agent) forgetLost() {
	if n := a.source.WentBack(); n != a.wentBack {
		a.wentBack = n
		a.reports.forgetSent()
		a.annotations.forgetSent()
	}
}
