package node

import (
	"context"
	"log/slog"
	"maps"
	"sync/atomic"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// publisher writes to Kubernetes what this node says of itself, and again what somebody else has overwritten.
type publisher struct {
	node        string
	source      *kube.Source
	reports     *mailbox[Report]
	annotations *mailbox[map[string]string]
	// shown is what the API shows of this node's annotations.
	shown    atomic.Pointer[shownAnnotations]
	wentBack int64 // of the loop alone: as the source last counted
}

// shownAnnotations is what the API shows of a node's annotations, as kube.Published, at a version.
type shownAnnotations struct {
	version   string
	published [32]byte
}

// deliverVersion writes a value, and returns the version that the API server gave it.
type deliverVersion[T any] = func(context.Context, T) (string, error)

func newPublisher(node string, source *kube.Source, report deliverVersion[Report],
	annotate deliverVersion[map[string]string], log *slog.Logger) *publisher {
	p := &publisher{node: node, source: source}
	p.reports = newMailbox("what this node holds", Report.Equal, report, p.reportOverwritten, log)
	p.annotations = newMailbox("this node's addresses", maps.Equal[map[string]string], annotate,
		p.annotationsOverwritten, log)
	return p
}

// publishAnnotations has annotations written, also where the Node says something else: somebody who garbles one would
// take the node out otherwise.
func (p *publisher) publishAnnotations(n *world.Node, annotations map[string]string) {
	p.shown.Store(&shownAnnotations{n.Version, n.Published})
	p.annotations.putValue(annotations)
}

// annotationsOverwritten reports whether the Node, in a version that is not older, says something else than was sent.
func (p *publisher) annotationsOverwritten(sent map[string]string, version string) bool {
	n := p.shown.Load()
	return n != nil && !kube.Older(n.version, version) && n.published != kube.Published(sent)
}

// reportOverwritten reports whether somebody else has written or deleted this node's EgressNode since a version. The
// agent alone has words to say there, so that any other version counts.
func (p *publisher) reportOverwritten(_ Report, version string) bool {
	return p.source.Overwritten(kube.EgressNodes(), p.node, version)
}

// forgetLost has everything written again after a restore of etcd: the API server may have lost it, and versions that
// it gave before say nothing any more.
func (p *publisher) forgetLost() {
	if n := p.source.WentBack(); n != p.wentBack {
		p.wentBack = n
		p.reports.forgetSent()
		p.annotations.forgetSent()
	}
}
